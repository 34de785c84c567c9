/*
 * Running a call of a thread's again because it was taken out of it by us, or
 * by a signal that it would not have noticed without us.
 *
 * The rest of a call that came back with a part: the thread is sent back to
 * its syscall instruction with the arguments of lib/capture/restart/partial.h, under
 * PTRACE_SYSCALL: it stops where the call begins and where it ends, results are
 * added, and it goes on with the registers that it would have had without us.
 * A part that nobody interrupted is the last: the call had a reason of its own,
 * such as the timeout of its socket. So are those that a signal that it
 * handles, a group-stop, or an error ended: it gets the sum so far, as it would
 * from the kernel, which shows the error at the next call. And one whose
 * descriptor has another file by then, which must not get the rest.
 *
 * A wait with a relative timeout, which begins anew when it is run again: the
 * same, with the arguments as they are, so that nothing is lost if we leave in
 * the middle.
 *
 * A call that gives up where it is interrupted at its work: the same, and it is
 * not interrupted until it is done.
 *
 * Of the first two the time is watched, from when the thread is known to have
 * been in the call. When it is over, whoever calls interrupts the thread, and
 * the call gets the result that it has then.
 *
 * Beware: a tracer that is killed in a rest leaves the thread with the result
 * of the last part alone (docs/SAFETY.md).
 */
#ifndef LIB_CAPTURE_RESTART_REST_H
#define LIB_CAPTURE_RESTART_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/restart/files.h"
#include "lib/capture/restart/partial.h"
#include "lib/capture/restart/timeout.h"

enum rest_state {
	REST_NONE,
	REST_AHEAD,  /* on its way into the call */
	REST_INSIDE, /* in it */
};

#define REST_NEVER UINT64_MAX

struct rest {
	enum rest_state state;
	bool whole;	      /* the call as it was: a wait, not a rest */
	bool alone;	      /* that, at work: it must not be interrupted */
	unsigned int in_vain; /* parts in a row that brought nothing */
	bool counts;	      /* what the part under way brings */
	bool interrupted;     /* by us, perhaps, where it begins */
	uint64_t asked;	      /* what it brings, if it is not cut short */
	uint64_t call_pc;     /* of the instruction that it is sent back to */
	struct partial partial;
	struct files files; /* of a call that is gone on with */
	uint64_t since_ns;
	uint64_t until_ns; /* then the call's time is over; REST_NEVER */
	/* The kernel will not end it by then, since for it it began later. */
	bool late;
	struct timeout timeout; /* if until_ns is not REST_NEVER */
};

/* A stop of a thread by which a call of its may have been interrupted. */
struct rest_stop {
	int32_t pid;
	uint32_t tid;
	int pagemap_fd; /* see lib/capture/proc/memory.h */
	const struct user_regs_struct *regs;
	int signal;	   /* of a signal-delivery-stop, else 0 */
	uint64_t since_ns; /* when it was in the call, no earlier known */
	uint64_t now_ns;
	bool at_call; /* at the begin or end of a call */
	/* An interrupt of ours was on its way to it, which this stop took. */
	bool interrupted;
	/*
	 * A rest may still go on after it: it is no group-stop, no signal, and
	 * rests are not being cut off.
	 */
	bool goes_on;
};

/*
 * For a call that came back with a part. Returns true if a rest is to be run:
 * the thread has to be continued by PTRACE_SYSCALL as long as state is not
 * REST_NONE.
 */
bool rest_begin(struct rest *r, const struct rest_stop *stop);

/*
 * For a wait that was interrupted and whose relative timeout would begin anew,
 * and for a call that gives up where it is interrupted (repair_alone).
 * Returns true if it goes on with what is left of it, in the same way. False:
 * it is another call, or was interrupted by what interrupts it without us.
 */
bool rest_wait(struct rest *r, const struct rest_stop *stop);

/*
 * A stop of a thread with a rest. regs are its registers; they become those
 * that it would have without us.
 */
void rest_stopped(struct rest *r, const struct rest_stop *stop, struct user_regs_struct *regs);

/*
 * True if the thread is to be left alone until it stops: in the call its stack
 * is what it was at the last stop, and will be at the next.
 */
static inline bool rest_is_alone(const struct rest *r)
{
	return r->state != REST_NONE && r->alone;
}

/*
 * True if the call would fail if we left now: the kernel lets go of who is
 * stopped where a call begins as if by a signal (__ptrace_unlink()). It is for
 * the moment until it has begun.
 */
static inline bool rest_is_ahead(const struct rest *r)
{
	return r->state == REST_AHEAD;
}

/* True if a wait's result may not be its own, and we are to mend it. */
bool rest_is_mended(const struct rest *r);

/* True if a result would be lost if we left now. */
static inline bool rest_is_at_risk(const struct rest *r)
{
	return r->state != REST_NONE && !r->whole;
}

#endif
