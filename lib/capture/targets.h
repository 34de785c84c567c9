/*
 * The list of targets of a capture: makes, finds, ends and frees them. A target goes through
 * targets_new(), a scan of its threads (attach.h), targets_add(), targets_end() and
 * targets_free_ended().
 */
#ifndef LIB_CAPTURE_TARGETS_H
#define LIB_CAPTURE_TARGETS_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Makes a target in phase TRACED_NEW, without threads. The parameters and errors are those of
 * capture_add(). The caller owns *ret until it passes it to targets_add() or targets_free().
 * Returns 0, -ESRCH, -EACCES, -ENOEXEC, or the negative errno for a lack of memory or descriptors.
 */
must_check int targets_new(struct capture *c, uint32_t id, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick, struct traced_process **ret);

/*
 * Adds a new target to the list, which then owns it, and sets phase TRACED_SAMPLED. Returns 0, or
 * -ENOMEM: then the caller still owns the target.
 */
must_check int targets_add(struct traced_process *t);

/* Returns the target of process pid, unless that is in TRACED_ENDED; else NULL. */
struct traced_process *targets_find(const struct capture *c, int32_t pid);

/* Removes a target from the list, and frees it and its threads. Writes no record. t may be NULL. */
void targets_free(struct traced_process *t);

/* Sets TRACED_ENDED: no thread is left, capture has detached, or sampling ends. end: the reason. */
void targets_end(struct traced_process *t, enum traced_end end);

/* If the table has no thread of the process, scans it, and calls targets_end() if none is found. */
void targets_end_if_gone(struct traced_process *t);

/* Counts the samples under way as missed, writes a last RECORD_TICK and calls targets_end(). */
void targets_finish(struct traced_process *t);

/*
 * Frees the targets in TRACED_ENDED. Before that, writes RECORD_END and reports CAPTURE_GONE or
 * CAPTURE_FOREIGN (capture_options.event); after a crash it writes no record and calls
 * capture_options.crashed. A target whose ring has no room for the record stays until the next
 * call.
 */
void targets_free_ended(struct capture *c);

#endif
