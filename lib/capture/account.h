/*
 * A thread's account of processor time: what the kernel says that it ran
 * (schedstat), against what the reader is told, which is the time from a sample
 * that says so until the thread's next record.
 *
 * Of a thread that can run nobody tells cheaply whether it does just then: the
 * kernel says that it does or waits for a processor, and an interrupt makes the
 * scheduler choose it, or not. So each tick is given to it as long as it has
 * run for as much, and what it was told is right in sum, however many share a
 * processor.
 *
 * The kernel need not be asked at each tick for that: in between a thread is
 * taken to go on as it did, until the next answer says what it was.
 *
 * Times are in nanoseconds. Nothing here fails.
 */
#ifndef LIB_CAPTURE_ACCOUNT_H
#define LIB_CAPTURE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct account {
	bool begun;	   /* run_ns is known */
	uint64_t run_ns;   /* at the last look */
	int64_t owed_ns;   /* that it ran, and was not told; negative: was */
	uint64_t look_ns;  /* when that was */
	bool woke;	   /* since then; it was asleep before */
	bool has_share;	   /* it is known, from the look before to that one */
	double share;	   /* of that time, for which it ran */
	uint64_t guess_ns; /* what owed_ns has by that share since */
	uint64_t since_ns; /* it is told to run from then on; 0: it is not */
};

/*
 * At a look, at time_ns: it has run for so long in its life. tick_ns: between
 * two looks. More than some looks' worth is neither owed nor asked back:
 * whoever could not be told at the time is not told for seconds when others
 * have the processor.
 */
void account_look(struct account *a, uint64_t run_ns, uint64_t time_ns,
		  uint64_t tick_ns);

/* It was asleep: what it ran meanwhile says nothing of what follows. */
void account_wake(struct account *a);

/* At a look at which the kernel is not asked. Its share is known. */
void account_guess(struct account *a, uint64_t time_ns, uint64_t tick_ns);

/* From this tick on it is told to run. */
void account_begin(struct account *a, uint64_t time_ns);

/* From this tick on it is told something else, or whatever may come next. */
void account_end(struct account *a, uint64_t time_ns);

/*
 * True if it may be told to run for the tick of the last look: what it ran
 * reaches so far, give or take what the scheduler has not written down yet.
 */
bool account_has_run(const struct account *a, uint64_t tick_ns);

/*
 * True if it has run for so much more than it was told that it is told at any
 * tick, be it one at which it had no processor.
 */
bool account_is_behind(const struct account *a, uint64_t tick_ns);

#endif
