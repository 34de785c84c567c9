/*
 * Watched parts: bytes of a process's memory (struct watch_part) that capture hashes at ticks, to
 * report changed hashes in RECORD_WATCHED. unwind, the reader of the ring, sends the list. It
 * chooses bytes in which ELF files differ, and so notices when another file is mapped at the same
 * addresses.
 *
 * The list may be hostile. It can only make capture hash WATCH_PARTS * WATCH_BYTES bytes in each
 * tick, of a process whose stacks the reader gets anyway.
 */
#ifndef LIB_CAPTURE_WATCH_H
#define LIB_CAPTURE_WATCH_H

#include <stdbool.h>

#include "lib/base/watch_part.h"
#include "lib/capture/state.h"

/*
 * Replaces the list of t by a copy of n parts, at most WATCH_PARTS; list is its number, which
 * RECORD_WATCHED repeats. If the number is unchanged, a part that is unchanged at its index keeps
 * its last hash, so that only changes are reported. If memory cannot be allocated, t has no list.
 */
void watch_set(struct traced_process *t, uint32_t list, const struct watch_part *parts, size_t n);

/* Frees the list. Call this after an exec, for a new reader of the ring, and before t is freed. */
void watch_clear(struct traced_process *t);

/* Reports all hashes anew at the next ticks. Call this when the reader may have missed records. */
void watch_forget(struct traced_process *t);

/*
 * Hashes the parts that are due (watch_part.often), and writes RECORD_WATCHED for each changed
 * hash. A part that is not in memory has the hash 0. Does nothing without a list, and while the
 * memory is slow to read (slow_memory.h). Call it once in each tick in which a thread has a look or
 * a sample, before the first of them.
 */
void watch_tick(struct traced_process *t, uint64_t tick, uint64_t time_ns);

#endif
