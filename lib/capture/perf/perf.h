/*
 * Samples of what each processor runs, by the kernel's perf events: one event of the processor's
 * own clock (PERF_COUNT_SW_CPU_CLOCK) for each processor, of all processes. The kernel writes
 * samples, births, execs and ends into one ring for each processor, which only this process has
 * mapped. The module reads the rings and merges their records by time. It attaches to no process.
 *
 * Use at each tick: perf_begin(), then perf_next() and perf_release() until perf_next() returns
 * false. A record of a foreign process is dropped without a copy of its stack.
 *
 * Beware: an event of a thread instead of a processor would slow programs that hand over often by
 * 1.4 (the kernel programs a timer at each switch). poll(2) is of no use: on an event whose
 * processor is gone it returns at once, for ever. So the caller reads the rings by a timer of its
 * own; a ring holds some 30 samples with whole stacks.
 */
#ifndef LIB_CAPTURE_PERF_PERF_H
#define LIB_CAPTURE_PERF_PERF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/perf/decode.h"

struct perf;

/* The most bytes of stack that the kernel copies into a sample. */
#define PERF_STACK_BYTES_MAX (63u * 1024)

/*
 * Opens the events of all processors that are online, stopped, and maps their rings. stack_bytes: a
 * multiple of 8, at most PERF_STACK_BYTES_MAX. Returns 0; -EACCES or -EPERM (CAP_PERFMON is
 * missing, or the memory for rings is used up: perf_event_mlock_kb); -ENOSYS (a seccomp filter, or
 * a kernel without perf events); or another error of perf_event_open(2), mmap(2) or uname(2).
 */
must_check int perf_open(uint32_t stack_bytes, struct perf **ret);
/* p may be NULL. */
void perf_close(struct perf *p);

/* Sets the time between two samples of a processor, in ns; 0: stops the events. */
void perf_set_period(struct perf *p, uint64_t period_ns);

/*
 * Closes the events of processors that have gone offline, and opens those of new ones. Called once
 * a second. Takes a system call for each processor.
 */
void perf_check_processors(struct perf *p);

/* Reads how far the rings are filled. Records that come later are not returned before the next
 * call.
 */
void perf_begin(struct perf *p);

/*
 * Finds the oldest record of all rings if its time is before until_ns. The caller calls
 * perf_release() before the next call. A thread's records come in their order if until_ns was not
 * after the time of perf_begin(). A ring with an impossible record is emptied: PERF_KIND_LOST.
 */
must_check bool perf_next(struct perf *p, uint64_t until_ns, const struct perf_record **ret);

/* Copies the first n bytes of the stack of the record that perf_next() has returned. */
void perf_read_stack(const struct perf *p, void *to, size_t n);

/* Returns which registers of that record are valid (perf_regs_known()). */
uint64_t perf_read_known(const struct perf *p);

/* Frees the room of that record. */
void perf_release(struct perf *p);

/* Returns the stack_bytes of perf_open(). */
size_t perf_stack_bytes(const struct perf *p);

#endif
