/*
 * Letting go of targets: of one (capture_remove), or of all at the end.
 *
 * PTRACE_DETACH needs a stopped thread, and a stop would take a blocked thread out of its call.
 * But the kernel stops no thread when the tracing thread ends. So capture lets go of one target by
 * the end of the tracing thread, after which another thread of the same process attaches to the
 * other targets again:
 *
 *   capture_remove; ticks until capture_lets_go returns true; no tick from here on;
 *   capture_settle until it returns true, or for as long as the caller wants to wait; the end of
 *   the tracing thread; capture_attach_again in a new one, at once.
 *
 * At the end of all: capture_settle, capture_finish, the end of the tracing thread.
 */
#ifndef LIB_CAPTURE_LEAVE_H
#define LIB_CAPTURE_LEAVE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct capture;

/*
 * The target is to be let go of: it is not looked at any more. The other targets still are.
 * Returns 0, or -ENOENT if there is no such target (any more).
 */
must_check int capture_remove(struct capture *c, uint32_t target);

/* Returns true if a target is to be let go of and has not ended. */
bool capture_is_leaving(const struct capture *c);

/*
 * To be called between two ticks, some times a second while capture_is_leaving. Returns true if no
 * thread of the leaving target has a stop or a resumed call under way (capture_settle), and no
 * thread of the other targets a resumed call, or none that ends soon; after 10 s at the latest. If
 * capture_settle does not return true at once after that, capture_lets_go may return false again,
 * and there are ticks again.
 */
must_check bool capture_lets_go(struct capture *c);

/*
 * To be called after the last tick, again after the next stops, and some times a second. Returns
 * true if no thread has an interrupt under way, and none is in a call that would fail, or return
 * less, if the tracer ended now (restart/resume.h). Resumed calls that take long are cut short, so
 * that the target gets the part that is done. Returns true after 20 s, whatever the threads do.
 */
must_check bool capture_settle(struct capture *c);

/*
 * Ends sampling: samples under way count as missed, each target gets its RECORD_END. Returns false
 * if a ring had no room: call it again after a credit.
 */
must_check bool capture_finish(struct capture *c);

/*
 * In the new tracing thread: ends the targets that were removed (CAPTURE_GONE), and attaches to
 * the others, some 5 us a thread. An end or an exec that happened meanwhile is reported as usual.
 */
void capture_attach_again(struct capture *c);

#endif
