/*
 * The rings that capture writes, and its links to the processes that read them:
 * heads go out, credits and hints come in.
 *
 * A reader is not trusted: what breaks a rule loses its link, and the broker is
 * told by the caller.
 */
#ifndef DAEMON_CAPTURE_READERS_H
#define DAEMON_CAPTURE_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "lib/capture/capture.h"

struct readers;

struct readers_options {
	struct loop *loop;
	struct capture *capture;
	/* Its reader has broken a rule, and has no link any more. */
	void (*broken)(uint32_t ring);
};

must_check int readers_new(const struct readers_options *options, struct readers **ret);

/*
 * Makes the ring of this number, for the reader at the other end of link_fd,
 * which is taken; in place of the one that has the number, whose targets are
 * told anew. *ret_fd is for the reader, and the caller closes it. Returns 0,
 * -EPROTO if there are too many, -ENOMEM, or the error of a system call.
 */
must_check int readers_make(struct readers *r, uint32_t ring, int link_fd, int *ret_fd);

/*
 * Where a new target of that ring writes to, as long as we live; or NULL.
 */
struct capture_sink *readers_sink(struct readers *r, uint32_t ring);

/*
 * Before a tick, when nobody is stopped yet who would wait for it: tells the
 * readers for whom enough has come together.
 */
void readers_tick(struct readers *r, uint64_t now_ns);

/* After a tick: those that have a new target. */
void readers_tell_first(struct readers *r);

/* Tells all. */
void readers_tell(struct readers *r);

#endif
