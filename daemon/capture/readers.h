/*
 * The rings that capture writes, and the links to the processes that read them: heads of rings go
 * out, credits and stack hints come in.
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
 * Makes the ring of this number, for the reader at the other end of link_fd, which the function
 * takes over. If there is a ring of this number, the new one replaces it, and its targets are
 * announced anew. *ret_fd is for the reader; the caller closes it. Returns 0, -EPROTO if there are
 * too many rings, -ENOMEM, or the error of a system call.
 */
must_check int readers_make(struct readers *r, uint32_t ring, int link_fd, int *ret_fd);

/*
 * Returns the sink for a new target of a ring, which is valid as long as the process lives. Returns
 * NULL if there is no such ring.
 */
struct capture_sink *readers_sink(struct readers *r, uint32_t ring);

/* Sends the heads that are due. Call it before a tick, when no thread is stopped yet. */
void readers_tick(struct readers *r, uint64_t now_ns);

/* Sends the heads of rings with a new target. Call it after a tick. */
void readers_send_first_heads(struct readers *r);

/* Sends the heads of all rings. */
void readers_send_heads(struct readers *r);

#endif
