/*
 * Writes records (lib/capture/sample.h) into the ring of a target, from which unwind, the reader,
 * takes them. If the ring has no room for a record, the record is lost, and the reader no longer
 * knows the state of the threads. Then the function that writes the record sets
 * t->reader.needs_reset (state.h), and the next tick that finds room writes RECORD_RESET and
 * announces all threads anew (RECORD_THREAD). So a caller may ignore a lack of room. Samples are an
 * exception: see record_begin_sample(). The parameters tick and time_ns are those of the record.
 */
#ifndef LIB_CAPTURE_RECORD_H
#define LIB_CAPTURE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"

/* Call this for a new thread: sets how many bytes of the ring its first sample reserves. */
void record_begin_thread(struct thread *th);

/*
 * Call this when a thread has died: its RECORD_EXIT is written at the next tick, since its last
 * sample is valid until then. If memory cannot be allocated, sets needs_reset instead.
 */
void record_exit_later(struct traced_process *t, uint32_t tid);

/* Call this after an exec: no RECORD_EXIT is written for threads of the old program. */
void record_forget_exits(struct traced_process *t);

/* Marks the thread's last sample as not valid any more: the next look takes a new one. */
void record_forget_sample(struct thread *th);

/* Sets needs_reset. Call this if the reader has missed records, or if the ring has a new reader. */
void record_request_reset(struct traced_process *t);

/*
 * Clears needs_reset, writes RECORD_RESET, and moves all threads to the awake list (sleepers_wake).
 * They count as not announced from then on. If the ring has no room, only sets needs_reset again.
 */
void record_reset(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Returns the time for a record about an event that happens now, between two looks. Samples have
 * the time at which their period begins, and the record must not be later than the samples that
 * follow:
 * - While the period of capture's tick lasts: now, or the time of the process's last tick if that
 *   is later.
 * - After it, because the next tick comes late: the begin of the period that contains now.
 * - With capture_options.perf: the time of the tick whose samples are still to be written, or the
 *   end of its period if the process has been looked at.
 */
uint64_t record_time(const struct traced_process *t);

/*
 * Writes a record that consists of struct record only. tid: 0 if the record concerns no single
 * thread. Returns false if there is no room.
 */
bool record_event(struct traced_process *t, enum record_type type, uint32_t tid, uint64_t tick,
		  uint64_t time_ns);

/* Writes RECORD_WATCHED: part `number` of list `list` has this hash. Returns false if no room. */
bool record_watched(struct traced_process *t, uint32_t list, uint32_t number, uint64_t hash,
		    uint64_t tick, uint64_t time_ns);

/* Writes the RECORD_EXITs of record_exit_later(). */
void record_exits(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/* Writes RECORD_TICK. Returns false if the ring has no room. */
bool record_tick(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Writes RECORD_THREAD if the thread is not announced yet. Called before each sample of a look.
 * Returns true if the thread is announced. Returns false and sets *ret_reason if the ring has no
 * room, or if the thread's files in /proc exist and cannot be read. Then the caller takes no
 * sample, and counts the sample as missed for this reason. Opens files.
 */
must_check bool record_announce(struct thread *th, uint64_t tick, uint64_t time_ns,
				enum missed_reason *ret_reason);

/*
 * Call this with the thread pointer that a stop has shown (0: not known), before the sample of that
 * stop. Keeps the pointer in th->pointer. Writes RECORD_THREAD again if the reader wants pointers
 * (capture_want_thread_pointers) and does not know this pointer.
 */
void record_pointer(struct thread *th, uint64_t pointer, uint64_t tick, uint64_t time_ns);

/*
 * If the thread's name is due, reads the name and the thread's real-time priority. Writes
 * RECORD_THREAD if the name has changed, or the pointer that the reader wants. A name is due 8 to
 * 16 ticks after the announcement, then after 64 to 128, then every 512 to 1,024: so the names of
 * many threads are not due at one tick.
 */
void record_rename(struct thread *th, uint64_t tick, uint64_t time_ns);

/*
 * Calls record_rename() for the threads of the process. Skips sleeping threads whose names have
 * been checked several times: their names rarely change.
 */
void record_rename_all(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/* Call this when the thread may have another name: the next tick reads the name. */
void record_name_changed(struct thread *th);

/* Returns true if the reader knows the thread. The reader ignores records of other threads. */
bool record_knows(const struct thread *th);

/*
 * Counts this number of ticks, which may be 0, as missed. Marks the thread's last sample as not
 * valid any more.
 * Writes RECORD_MISSED, unless one was written since the last sample, or the reader does not know
 * the thread.
 */
void record_missed(struct thread *th, enum missed_reason reason, uint64_t ticks, uint64_t tick,
		   uint64_t time_ns);

/*
 * Call this if the thread is runnable without a processor from this tick on. Writes RECORD_READY
 * unless the last record about the thread's state says so already.
 */
void record_ready(struct thread *th, uint64_t tick, uint64_t time_ns);

/* Writes RECORD_RUNNING: the thread is running from this tick on. */
void record_running(struct thread *th, uint64_t tick, uint64_t time_ns);

/* Writes RECORD_WAITING: the thread is blocked from this tick on. */
void record_waiting(struct thread *th, uint64_t tick, uint64_t time_ns);

/*
 * Returns true if the ring has a reader, and room for a sample of the thread in addition to the
 * room that is reserved for the samples of interrupted threads (capture_sink.promised).
 */
bool record_has_room(const struct thread *th);

/*
 * Copies a sample of the thread into the ring: *ret is the record, *ret_size its bytes. regs,
 * regs_known and flags: see snapshot_take(). The reader does not see the sample before
 * record_commit_sample(). The next call of this module for the ring must be record_commit_sample()
 * or record_drop_sample(). Allocates nothing. Returns 0, -ENOBUFS if the ring is full, -E2BIG if
 * the ring is too small for the sample, or -EBUSY if the process's memory is slow (slow_memory.h).
 * An error does not set needs_reset: only this sample is lost.
 */
must_check int record_begin_sample(struct thread *th, uint64_t tick, uint64_t time_ns,
				   const uint64_t *regs, uint64_t regs_known, uint32_t flags,
				   struct record_sample **ret, size_t *ret_size);
/*
 * Completes the sample that record_begin_sample() has begun. size: its *ret_size. is_ready: the
 * sample says that the thread is ready.
 */
void record_commit_sample(struct thread *th, size_t size, bool is_ready);
/* Drops the sample that record_begin_sample() has begun. */
void record_drop_sample(struct thread *th);

/*
 * Copies a finished sample of size bytes into the ring, and commits it. The caller has set all
 * members but h, which the function sets. Returns false if the ring has no room, and does not set
 * needs_reset then.
 */
must_check bool record_write_sample(struct thread *th, const struct record_sample *sample,
				    size_t size, uint64_t tick, uint64_t time_ns);

/* Returns why the ring has no room: MISSED_NO_READER or MISSED_RING_FULL. */
enum missed_reason record_no_room_reason(const struct traced_process *t);

/* Returns the reason for an error of record_begin_sample(), or of the arch_get_regs() before it. */
enum missed_reason record_missed_reason(const struct traced_process *t, int error);

#endif
