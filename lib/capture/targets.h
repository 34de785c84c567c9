/*
 * The list of targets of a capture, from a target's first scan to its RECORD_END.
 */
#ifndef LIB_CAPTURE_TARGETS_H
#define LIB_CAPTURE_TARGETS_H

#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/state.h"

/*
 * Makes a target, TRACED_NEW and without threads. Parameters as for capture_add. Returns 0,
 * -ESRCH, -EACCES, -ENOEXEC, -ENOMEM or -EMFILE as capture_add does.
 */
must_check int targets_new(struct capture *c, uint32_t id, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick, struct traced_process **ret);

/* Adds a new target to the list: it is TRACED_SAMPLED. Returns 0 or -ENOMEM. */
must_check int targets_add(struct traced_process *t);

/* Frees a target and its threads, without a record. Takes NULL. */
void targets_free(struct traced_process *t);

/* The last thread is gone, or the target is let go of: TRACED_ENDED. */
void targets_end(struct traced_process *t);

/* Does that if the table has no thread of the process and a scan finds none. */
void targets_end_if_gone(struct traced_process *t);

/* No sample of the target comes any more: those under way are missed. Then targets_end. */
void targets_finish(struct traced_process *t);

/*
 * Frees the targets that are TRACED_ENDED: writes RECORD_END and reports CAPTURE_GONE or
 * CAPTURE_FOREIGN. A target whose ring has no room for that stays.
 */
void targets_free_ended(struct capture *c);

#endif
