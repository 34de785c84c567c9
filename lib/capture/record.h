/*
 * Writes records into the ring of a process (lib/capture/sample.h). If the ring has no room, the
 * record is lost. The reader then no longer knows the state of the threads, so the function sets
 * reader.needs_reset of the process (struct traced_process, state.h), and the next tick that finds
 * room writes RECORD_RESET and announces all threads anew. A caller may ignore that a function has
 * returned false for a lack of room. The parameters tick and time_ns are those of the record.
 */
#ifndef LIB_CAPTURE_RECORD_H
#define LIB_CAPTURE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/sample.h"
#include "lib/capture/state.h"

/* Sets what is known of the stack of a thread that is new in the table. */
void record_begin_thread(struct thread *th);

/* The thread is dead: its RECORD_EXIT is written at the next tick, since a sample holds until then.
 */
void record_exit_later(struct traced_process *t, uint32_t tid);

/* Another program has been executed: no RECORD_EXIT is written for threads of the old one. */
void record_forget_exits(struct traced_process *t);

/* The last sample does not stand for the thread any longer: it is sampled again at its next tick.
 */
void record_forget_sample(struct thread *th);

/* Sets needs_reset. Call this if the reader has missed records, or is a new one. */
void record_request_reset(struct traced_process *t);

/*
 * Writes RECORD_RESET, and moves all threads to the awake list (sleepers_wake). They count as not
 * announced from then on. If the ring has no room for the record, sets needs_reset again.
 */
void record_reset(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Returns the time for a record about an event outside of a tick: now, but not later than the
 * samples that follow. (Samples carry the time at which their period begins.)
 */
uint64_t record_time(const struct traced_process *t);

/* Writes a record that consists of struct record only. Returns false if there is no room. */
bool record_event(struct traced_process *t, enum record_type type, uint32_t tid, uint64_t tick,
		  uint64_t time_ns);

/* Writes RECORD_WATCHED. Returns false if there is no room. */
bool record_watched(struct traced_process *t, uint32_t list, uint32_t number, uint64_t hash,
		    uint64_t tick, uint64_t time_ns);

/* Writes RECORD_EXIT of the threads that have died since the last tick. */
void record_exits(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/* Writes RECORD_TICK. Returns false if the ring has no room. */
bool record_tick(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/*
 * Writes RECORD_THREAD if the thread is not announced yet. Called before a thread's first sample.
 * Returns true if the thread is announced. Returns false and sets *ret_reason if the ring has no
 * room, or if the thread's files in /proc could not be read. Then the caller takes no sample,
 * counts the sample as missed, and calls this function again at its next look at the thread.
 */
must_check bool record_announce(struct thread *th, uint64_t tick, uint64_t time_ns,
				enum missed_reason *ret_reason);

/*
 * Called with the thread pointer that a stop has shown (0: not known), before the sample of that
 * stop. Writes RECORD_THREAD again if the reader wants pointers and does not know this one.
 */
void record_pointer(struct thread *th, uint64_t pointer, uint64_t tick, uint64_t time_ns);

/* If a check is due, reads the thread's name, and writes RECORD_THREAD if the name has changed. */
void record_rename(struct thread *th, uint64_t tick, uint64_t time_ns);

/*
 * Calls record_rename() for the threads of the process. Skips sleeping threads whose names have
 * been checked several times: their names rarely change.
 */
void record_rename_all(struct traced_process *t, uint64_t tick, uint64_t time_ns);

/* The thread may have another name: it is read at the next tick. */
void record_name_changed(struct thread *th);

/* Returns true if the reader knows the thread. The reader ignores records of other threads. */
bool record_knows(const struct thread *th);

/* Counts ticks as missed. Writes RECORD_MISSED unless the thread's last record was one. */
void record_missed(struct thread *th, enum missed_reason reason, uint64_t ticks, uint64_t tick,
		   uint64_t time_ns);

/*
 * Call this if the thread is runnable without a processor from this tick on. Writes RECORD_READY
 * unless the thread's last record says so already.
 */
void record_ready(struct thread *th, uint64_t tick, uint64_t time_ns);

/* Writes RECORD_RUNNING. */
void record_running(struct thread *th, uint64_t tick, uint64_t time_ns);

/* Writes RECORD_WAITING: the thread is blocked from this tick on. */
void record_waiting(struct thread *th, uint64_t tick, uint64_t time_ns);

/* Returns true if the ring has room for a sample of the thread beside the samples under way. */
bool record_has_room(const struct thread *th);

/*
 * Copies a sample of the thread into the ring: *ret is the record, *ret_size its bytes. Must be
 * followed by record_commit_sample or record_drop_sample. Allocates nothing. Returns 0, -ENOBUFS
 * if the ring is full, or -EBUSY if the process's memory is slow.
 */
must_check int record_begin_sample(struct thread *th, uint64_t tick, uint64_t time_ns,
				   const uint64_t *regs, uint64_t regs_known, uint32_t flags,
				   struct record_sample **ret, size_t *ret_size);
/* Completes the sample that record_begin_sample() has begun. size: its *ret_size. */
void record_commit_sample(struct thread *th, size_t size, bool is_ready);
/* Drops the sample that record_begin_sample() has begun. */
void record_drop_sample(struct thread *th);

/*
 * Writes a finished sample, whose members but its start (h) are set. size: its bytes. Returns false
 * if the ring has no room.
 */
must_check bool record_write_sample(struct thread *th, const struct record_sample *sample,
				    size_t size, uint64_t tick, uint64_t time_ns);

/* Returns why the ring has no room for a sample: the ring is full, or has no reader. */
enum missed_reason record_no_room_reason(const struct traced_process *t);

/* Returns the reason for an error of record_begin_sample(), or of the ptrace(2) before it. */
enum missed_reason record_missed_reason(const struct traced_process *t, int error);

#endif
