/*
 * The rings that capture writes (lib/base/ring.h), and for each ring the link to its reader, an
 * unwind process. On the link capture sends the head of the ring, and receives credits and stack
 * hints (lib/capture/stack_hints.h).
 *
 * A reader is not trusted: if it breaks a rule, its link is closed, and options.broken tells the
 * broker.
 */
#ifndef DAEMON_CAPTURE_READERS_H
#define DAEMON_CAPTURE_READERS_H

#include <stdint.h>

#include "lib/base/loop.h"
#include "lib/capture/capture.h"

struct readers;

struct readers_options {
	struct loop *loop;
	struct capture *capture;
	/* Called when the ring's reader has broken a rule; its link is closed. */
	void (*broken)(uint32_t ring);
};

/* Makes *ret, without rings. Copies the options. Returns 0 or -ENOMEM. */
must_check int readers_new(const struct readers_options *options, struct readers **ret);

/*
 * Makes the ring of this number, for the reader at the other end of link_fd. The function owns
 * link_fd from here on, also if it fails. If there is a ring of this number, the new one replaces
 * it, and the threads of its targets are announced anew (capture_reset). *ret_fd is the memory of
 * the ring, for the reader; the caller closes it. Returns 0, -EPROTO if there are HEARTBEAT_SLOTS
 * rings already, -ENOMEM, or the error of a system call.
 */
must_check int readers_make(struct readers *r, uint32_t ring, int link_fd, int *ret_fd);

/*
 * Returns the sink for a new target of a ring, which is valid as long as capture runs. Returns
 * NULL if there is no such ring.
 */
struct capture_sink *readers_sink(struct readers *r, uint32_t ring);

/*
 * Sends the heads that are due: of a ring of which 256 KiB are unread, and every 500 ms of all
 * rings, or every 100 ms while there is a new target or a reader sends hints. Call it before a
 * tick, when no thread is stopped yet.
 */
void readers_tick(struct readers *r, uint64_t now_ns);

/*
 * Sends the head of each ring with a new target, or with a target that runs a new program: after
 * each of the first three ticks, and then every 5 ms until 100 ms after the first tick. So unwind
 * can open the program's files before the program ends. Does the same, every 50 ms at most, if
 * watched memory has changed (lib/capture/watch.h). Call it after the tick of time now_ns.
 */
void readers_send_first_heads(struct readers *r, uint64_t now_ns);

/* Sends the heads of all rings that have new records. */
void readers_send_heads(struct readers *r);

#endif
