/*
 * Resumes a system call that was interrupted by capture's ptrace-stop, or by a signal that the
 * thread would not have noticed without a tracer. The target sees one uninterrupted call. Three
 * kinds of calls are resumed:
 *
 * - Partial transfer: write(2) wrote 3 of 10 bytes. The thread goes back to its syscall
 *   instruction, with the arguments for the remaining 7 bytes (restart/partial.h). Each call that
 *   the thread enters in this way is a part. The thread gets the sum of the first result and those
 *   of the parts. No further part follows
 *   - after a signal that has a handler, or a group-stop;
 *   - after a part that meets the end of the file, or that fails. The thread does not get this
 *     error. Its next call fails, too, unless the kernel reports the error only once
 *     (docs/SAFETY.md);
 *   - after a part that was short without an interruption by capture: the kernel had its own
 *     reason, such as the timeout of a socket;
 *   - if the descriptor refers to another file by now.
 * - Wait with a relative timeout, which would start anew if the kernel restarted the call. The
 *   thread enters the same call again with the same arguments, so that nothing is lost if the
 *   tracer ends meanwhile.
 * - Call that discards its work when it is interrupted: the thread enters it again in the same way,
 *   and capture does not interrupt it until it is done ("undisturbed").
 *
 * While a call is resumed, the thread runs under PTRACE_SYSCALL: it stops at the begin and at the
 * end of the call, and goes on with the registers that it would have without capture. For the first
 * two kinds capture watches the time since the first entry (call_timeouts.h). When the timeout is
 * over, capture interrupts the thread, and the call ends with the result that it has then.
 *
 * Beware: if the tracer is killed during a partial transfer, the thread gets the result of the last
 * part only (docs/SAFETY.md).
 */
#ifndef LIB_CAPTURE_RESTART_RESUME_H
#define LIB_CAPTURE_RESTART_RESUME_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/restart/partial.h"
#include "lib/capture/restart/timeout.h"

enum resume_state {
	RESUME_NONE,	 /* no call is resumed */
	RESUME_ENTERING, /* the thread is on its way into the call */
	RESUME_INSIDE,	 /* the thread is in the call */
};

#define RESUME_NO_LIMIT UINT64_MAX

/* {0}: no call is resumed. Times are ns, CLOCK_MONOTONIC. */
struct resumed_call {
	enum resume_state state;
	bool same_call;		/* entered again unchanged: not a partial transfer */
	bool undisturbed;	/* the call must not be interrupted */
	unsigned int fruitless; /* parts in a row without progress */
	bool interrupted;	/* resume_stop.interrupted, at the begin of this part */
	uint64_t asked;		/* result of the current part if it transfers everything */
	uint64_t call_pc;	/* address of the syscall instruction; 0: not entered yet */
	uint8_t instruction[ARCH_CALL_BYTES]; /* at call_pc */
	struct partial partial;
	struct partial_files files; /* of a partial transfer */
	uint64_t since_ns;	    /* the first entry, as far as is known */
	uint64_t until_ns;	    /* end of the timeout; RESUME_NO_LIMIT: none */
	bool late; /* entered anew after since_ns: the kernel's timeout ends too late */
	struct timeout timeout; /* valid unless until_ns is RESUME_NO_LIMIT */
};

/* A stop of a thread that may have interrupted a system call. */
struct resume_stop {
	int32_t pid;
	uint32_t tid;
	int pagemap_fd; /* see proc/memory.h */
	const struct arch_regs *regs;
	int signal;	   /* of a signal-delivery-stop, else 0 */
	uint64_t since_ns; /* the thread has been in the call since then, as far as is known */
	uint64_t now_ns;
	bool at_call; /* the stop is that of PTRACE_SYSCALL, at the begin or the end of a call */
	/* Capture had sent an interrupt, and no stop had followed until this one. */
	bool interrupted;
	/*
	 * A call that is being resumed may go on at once: the stop is no group-stop and brings no
	 * signal, and capture does not end resumed calls in order to detach (state_is_cut). After a
	 * signal that the thread ignores, resume_partial() begins the rest anew.
	 */
	bool goes_on;
};

/*
 * Resumes a call that returned a part. Do not call this while capture ends resumed calls
 * (state_is_cut). Returns true if the thread's registers are set for the rest: the caller then
 * continues the thread by PTRACE_SYSCALL, after this stop and after each further one, as long as
 * r->state is not RESUME_NONE. Otherwise returns false, and the thread keeps its result.
 */
bool resume_partial(struct resumed_call *r, const struct resume_stop *stop);

/*
 * Resumes an interrupted wait whose relative timeout would start anew, or a call that must not be
 * disturbed (repair_needs_undisturbed). On processors without ARCH_RESULT_RESTARTS it also resumes
 * every other call for which repair_is_due() is true, because repair_call() cannot restart it
 * there.
 *
 * Returns true if the call is entered again: the caller then continues the thread as after
 * resume_partial(). Returns false for any other call, and for an interruption that would have
 * happened without capture, too. Then repair_call() may restart the call.
 */
bool resume_wait(struct resumed_call *r, const struct resume_stop *stop);

/*
 * Handles a stop of a thread with a resumed call; does nothing if r->state is RESUME_NONE. Call
 * this first at each stop.
 *
 * What the caller does then, if r->state is RESUME_NONE. The stop may have cut a call short if it
 * is an interrupt of capture, the notice of a SIGCONT, or a signal-delivery-stop, also of a signal
 * that the thread ignores; not in a group-stop. If so, and if arch_interrupted_call() and
 * arch_knows_arguments() are true, the caller tries in this order, until one returns true:
 * resume_wait(), repair_call() (repair.h), resume_partial(). If none does, it calls
 * repair_socket(). These functions find out themselves whether the thread would have noticed the
 * signal.
 *
 * If r->state was another one before, so that the resumed call has ended now, and stop->interrupted
 * is set, the caller interrupts the thread again, and does not call resume_partial() at the stop
 * that follows: a short result is then the kernel's.
 *
 * The function writes the thread's registers itself where the call needs it. *regs is the object at
 * stop->regs. The function replaces them by those that the thread would have without capture, for
 * the functions above and for the sample: the caller does not write them to the thread.
 */
void resume_stopped(struct resumed_call *r, const struct resume_stop *stop, struct arch_regs *regs);

/*
 * Returns true if the thread must not be interrupted. Its user stack does not change before it
 * stops again, so no sample needs the interrupt.
 */
static inline bool resume_is_undisturbed(const struct resumed_call *r)
{
	return r->state != RESUME_NONE && r->undisturbed;
}

/*
 * Returns true while the thread is on its way into the resumed call. If the tracer ended before the
 * call has begun, the call would fail: for a thread that is stopped at the begin of a call, the end
 * of its tracer acts like a signal (__ptrace_unlink()).
 */
static inline bool resume_is_entering(const struct resumed_call *r)
{
	return r->state == RESUME_ENTERING;
}

/*
 * Returns true if resume_stopped() may have to replace the result of the call at its end: a
 * connect(2) that is entered again returns EALREADY, where the first call would have returned the
 * result of its timeout.
 */
bool resume_corrects_result(const struct resumed_call *r);

/* Returns true during a partial transfer: its sum so far would be lost if the tracer ended now. */
static inline bool resume_holds_result(const struct resumed_call *r)
{
	return r->state != RESUME_NONE && !r->same_call;
}

#endif
