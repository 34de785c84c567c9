/*
 * Samples of what each processor runs, by the kernel's perf events: for each processor one event of
 * its clock (PERF_COUNT_SW_CPU_CLOCK), which covers all processes. For each processor the kernel
 * writes samples and the births, execs and ends of threads into a ring, which only this process has
 * mapped. The module reads the rings and merges their records by time. It attaches to no process.
 *
 * At each tick the caller (observe.c) calls perf_begin(), then perf_next() and perf_release() until
 * perf_next() returns false. The caller gets records of all processes, and copies the stack
 * (perf_read_stack) only for processes that it profiles. Times are ns, CLOCK_MONOTONIC.
 *
 * Beware: the caller must read the rings before they are full, by a timer of its own. A ring of 512
 * KiB holds some 30 samples with 16 KiB of stack. poll(2) is of no use: on an event whose processor
 * is gone it returns at once, for ever. Events of threads instead of processors would slow programs
 * that switch threads often by a factor of 1.4, since the kernel programs a timer at each switch.
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
 * Opens the events of all processors that are online, and maps their rings. No samples are taken
 * before perf_set_period(). stack_bytes: the bytes of stack in a sample, a multiple of 8, at most
 * PERF_STACK_BYTES_MAX. Returns 0; -EACCES or -EPERM (CAP_PERFMON is missing, or the memory for
 * rings is used up: perf_event_mlock_kb); -ENOSYS (a seccomp filter, or a kernel without perf
 * events); -ENOMEM; -ERANGE (more than 8,192 processors); or another error of perf_event_open(2) or
 * mmap(2).
 */
must_check int perf_open(uint32_t stack_bytes, struct perf **ret);
/* Closes the events and frees p, which may be NULL. */
void perf_close(struct perf *p);

/* Sets the time between two samples of a processor, in ns, and starts the events; 0: stops them. */
void perf_set_period(struct perf *p, uint64_t period_ns);

/*
 * Closes the events of processors that have gone offline, and opens events for new processors.
 * Returns true if it has closed or opened one. Then records are lost: those that were unread in the
 * ring of a closed event, and those of a processor while it had no event. Call it once a second,
 * and not between perf_next() and perf_release(). Takes a system call for each processor.
 */
bool perf_check_processors(struct perf *p);

/*
 * Reads how far the rings are filled. A record that the kernel writes after this call is returned
 * by perf_next() only after the next perf_begin().
 */
void perf_begin(struct perf *p);

/*
 * Returns true and sets *ret to the oldest record of all rings, if its time is before until_ns;
 * else returns false. *ret is valid until perf_release(), which the caller calls before the next
 * perf_next(). A thread's records come in their order if until_ns is not after the time of
 * perf_begin(). If the next record of a ring is invalid, *ret is a PERF_KIND_LOST with the time 0.
 * perf_release() then frees all records that the ring had at perf_begin().
 */
must_check bool perf_next(struct perf *p, uint64_t until_ns, const struct perf_record **ret);

/*
 * Copies the first n bytes of the stack of the record of perf_next(). n is at most the record's
 * stack_size.
 */
void perf_read_stack(const struct perf *p, void *to, size_t n);

/* Returns which registers of the record of perf_next() are valid: bit n for regs[n]. */
uint64_t perf_read_known(const struct perf *p);

/* Frees the room of the record of perf_next() in its ring. */
void perf_release(struct perf *p);

/* Returns the stack_bytes of perf_open(). */
size_t perf_stack_bytes(const struct perf *p);

#endif
