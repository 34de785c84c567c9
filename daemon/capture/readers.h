/*
 * The rings of shared memory into which capture writes samples (lib/base/ring.h), and for each ring
 * the link (a socket) to its reader, an unwind process. On the link capture sends the head of the
 * ring: the position up to which the reader may read. Capture receives:
 * - credits: positions up to which the reader has read;
 * - stack hints (lib/capture/stack_hints.h), and the registers and memory that the reader wants
 *   captured as well (MSG_WANT_REGISTERS, MSG_WATCH).
 *
 * A reader is not trusted: if it breaks a rule of its messages, this module closes its link and
 * calls options.broken. If the reader closes the link, this module closes its end, too, and does
 * not call options.broken. In both cases capture takes no samples for the ring until
 * readers_make() replaces the ring.
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
	/* Called when the ring's reader has broken a rule, after its link was closed. */
	void (*broken)(uint32_t ring);
};

/* Makes *ret, without rings. Copies *options. Returns 0 or -ENOMEM. */
must_check int readers_new(const struct readers_options *options, struct readers **ret);

/*
 * Makes the ring of this number, for the reader at the other end of link_fd. The function owns
 * link_fd, also if it fails. *ret_fd is the memory of the ring, for the reader; the caller closes
 * it. If there is a ring of this number, the new one replaces it: the targets of the old ring write
 * to the new one, in which lib/capture announces all their threads again (capture_reset). Returns
 * 0, -EPROTO if there are HEARTBEAT_SLOTS rings of other numbers already, -ENOMEM, or the negative
 * errno of a system call.
 */
must_check int readers_make(struct readers *r, uint32_t ring, int link_fd, int *ret_fd);

/*
 * Returns the sink of a ring, for capture_add() of a new target. The sink is valid until this
 * process ends. Returns NULL if there is no such ring. Call this function once for each new target,
 * because it also makes readers_send_first_heads() announce the target's first samples.
 */
struct capture_sink *readers_sink(struct readers *r, uint32_t ring);

/*
 * Sends the heads that are due:
 * - of each ring into which capture has written 256 KiB or more since the last head that was sent;
 * - of all rings, every 500 ms; but every 100 ms for 2 s after something new: a ring, a target, a
 *   program of a target, or a reader's message other than a credit.
 *
 * Call it before each tick, when no thread is stopped yet. now_ns, here and below: CLOCK_MONOTONIC.
 */
void readers_tick(struct readers *r, uint64_t now_ns);

/*
 * Call it after each tick. Sends the head of a ring sooner than readers_tick() does:
 * - after each of the first three ticks of a new target, or of a new program of a target;
 * - from then on until 100 ms after the first of these ticks, if the last head of this function is
 *   5 ms old;
 * - if watched memory of a target has changed (lib/capture/watched_parts.h), and the last head of
 *   this function is 50 ms old.
 *
 * Reason: unwind can open the files of a program only as long as the program runs.
 */
void readers_send_first_heads(struct readers *r, uint64_t now_ns);

/*
 * Sends the heads of all rings that have new records. Call it before the broker is told that a
 * target has ended or executed a program, so that unwind gets the records of that event first.
 */
void readers_send_heads(struct readers *r);

#endif
