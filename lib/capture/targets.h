/*
 * The list of targets of a capture, from a target's first scan to its RECORD_END.
 */
#ifndef LIB_CAPTURE_TARGETS_H
#define LIB_CAPTURE_TARGETS_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Makes a target in TRACED_NEW, without threads. The parameters are those of capture_add(). The
 * caller passes *ret to targets_add() or targets_free(). Returns 0, or -ESRCH, -EACCES, -ENOEXEC,
 * -ENOMEM or -EMFILE as capture_add() does.
 */
must_check int targets_new(struct capture *c, uint32_t id, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick, struct traced_process **ret);

/*
 * Adds a new target to the list. It is TRACED_SAMPLED afterwards. Returns 0, or -ENOMEM: the target
 * stays the caller's.
 */
must_check int targets_add(struct traced_process *t);

/* Returns the target of process pid that is not TRACED_ENDED, or NULL. */
struct traced_process *targets_find(const struct capture *c, int32_t pid);

/* Frees a target and its threads. Writes no record. t may be NULL. */
void targets_free(struct traced_process *t);

/* Sets TRACED_ENDED. Call this when the last thread is gone, or capture has detached from it. */
void targets_end(struct traced_process *t, enum traced_end end);

/* Calls targets_end() if the table has no thread of the process and a scan finds none. */
void targets_end_if_gone(struct traced_process *t);

/* Counts the samples under way as missed, writes a last RECORD_TICK and calls targets_end(). */
void targets_finish(struct traced_process *t);

/*
 * Frees the targets in TRACED_ENDED, after writing RECORD_END and reporting CAPTURE_GONE or
 * CAPTURE_FOREIGN; after a crash it writes no record and calls options.crashed. A target whose ring
 * has no room for the record stays until the next call.
 */
void targets_free_ended(struct capture *c);

#endif
