/*
 * The list of targets of a capture: makes, finds, ends and frees them. capture_add() calls
 * targets_new(), scans the threads (attach.h), and calls targets_add(). The module that finds that
 * a target has ended calls targets_end(). targets_free_ended() reports and frees such targets.
 */
#ifndef LIB_CAPTURE_TARGETS_H
#define LIB_CAPTURE_TARGETS_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Makes a target in phase TRACED_NEW, without threads. The parameters are those of capture_add().
 * The caller owns *ret until it passes it to targets_add() or targets_free(). Returns 0, or one of
 * these errors of capture_add(): -ESRCH, -EACCES, -ENOEXEC, or a lack of memory or descriptors.
 */
must_check int targets_new(struct capture *c, uint32_t id, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick, struct traced_process **ret);

/*
 * Adds a new target to the list, which then owns it, and sets phase TRACED_SAMPLED. Returns 0, or
 * -ENOMEM: then the caller still owns the target.
 */
must_check int targets_add(struct traced_process *t);

/* Returns the target in the list with this pid that is not in TRACED_ENDED; NULL: there is none. */
struct traced_process *targets_find(const struct capture *c, int32_t pid);

/* Frees a target and its threads, and removes it from the list. Writes no record. t may be NULL. */
void targets_free(struct traced_process *t);

/* Sets TRACED_ENDED: capture takes no further samples of the target. end: the reason. */
void targets_end(struct traced_process *t, enum traced_end end);

/*
 * Calls targets_end() with TRACED_END_GONE if the process has no thread any more: the table of
 * tracees.h has none of its threads, and a complete scan (attach_scan) adds none. Does nothing
 * while the process is held (held_exec.h).
 */
void targets_end_if_gone(struct traced_process *t);

/*
 * Ends a target whose process may live on: counts the samples under way as missed, writes a last
 * RECORD_TICK and calls targets_end() with TRACED_END_GONE.
 */
void targets_finish(struct traced_process *t);

/*
 * Frees the targets in TRACED_ENDED. Before that, if the reason of the end (there are three) is
 * - TRACED_END_GONE or TRACED_END_FOREIGN: writes RECORD_END, and reports CAPTURE_GONE or
 *   CAPTURE_FOREIGN (capture_options.event). If the ring has no room for the record, the target
 *   stays until the next call.
 * - TRACED_END_CRASH: calls capture_options.crashed. Writes no RECORD_END, because the process may
 *   become a target again when its crash handler is done.
 */
void targets_free_ended(struct capture *c);

#endif
