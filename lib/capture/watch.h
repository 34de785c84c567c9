/*
 * Watched parts: bytes of a process's memory whose changes capture reports to the reader of its
 * ring (struct watch_part, RECORD_WATCHED). The reader watches what tells the images of a process
 * apart, so that it notices when one has taken the place of another.
 *
 * The list may be hostile. It can only make capture hash WATCH_PARTS * WATCH_BYTES bytes a tick of
 * a process that the reader gets the stacks of anyway.
 */
#ifndef LIB_CAPTURE_WATCH_H
#define LIB_CAPTURE_WATCH_H

#include <stdbool.h>

#include "lib/base/watch_part.h"
#include "lib/capture/state.h"

/*
 * Replaces the list of t by n parts, at most WATCH_PARTS, and sets its number. With the same number
 * as before, parts that are at the same index again keep their last hash. Without memory t has no
 * list.
 */
void watch_set(struct traced_process *t, uint32_t list, const struct watch_part *parts, size_t n);

/* Forgets the list: the program or the reader is another one. */
void watch_clear(struct traced_process *t);

/* Forgets the last hashes: the reader may have missed records. */
void watch_forget(struct traced_process *t);

/*
 * Hashes the parts that are due, and writes a record for each hash that has changed. Call it at
 * each tick at which a thread has run since the tick before, before the thread is looked at.
 */
void watch_tick(struct traced_process *t, uint64_t tick, uint64_t time_ns);

#endif
