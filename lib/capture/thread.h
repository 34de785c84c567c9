/*
 * The state of one thread of a target. Private to lib/capture.
 *
 * struct thread consists of parts. The comment at each part names the modules that write it.
 *
 * A "mark" is a reading of the thread's run time, wait time and time slices (proc/activity.h):
 * equal marks mean that the thread has not run in between.
 */
#ifndef LIB_CAPTURE_THREAD_H
#define LIB_CAPTURE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/capture/balance.h"
#include "lib/capture/counters.h"
#include "lib/capture/proc/activity.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/sample.h"
#include "lib/capture/stack_hints.h"

struct traced_process;

/* A life only goes forward. */
enum thread_life {
	/*
	 * Not looked at yet. The thread existed before capture attached, and waits until its first
	 * sample is allowed (struct first_samples).
	 */
	THREAD_AWAITS_TURN,
	THREAD_NEW,  /* may be looked at, and has not been */
	THREAD_SEEN, /* looked at at a tick */
	THREAD_DEAD, /* the leader has exited, its threads have not */
};

/* The stop that is still to come from an interrupt of capture. */
enum thread_due {
	DUE_NOTHING,
	DUE_STOP,   /* a stop that gives no sample: that was taken without it or given up, or there
		       was none */
	DUE_SAMPLE, /* the stop gives the sample of pending.tick */
};

/*
 * A group-stop interrupts system calls without a tracer, too. When it ends, the thread stops once
 * more, and that stop interrupts its call in the same way: GROUP_STOP_AFTER lasts until the thread
 * has left the kernel.
 */
enum thread_group_stop {
	GROUP_STOP_NONE,
	GROUP_STOP_IN,
	GROUP_STOP_AFTER, /* the thread may not have left the kernel since */
};

/* sleepers.h: the wait of a sleeping thread (thread.asleep). */
struct thread_sleep {
	struct activity_mark mark;   /* while it stays the same, the thread has not run */
	struct activity_place place; /* where the thread was found blocked */
	uint64_t since_ns;	     /* when it was found blocked there */
};

/* look.h and tracees.h: the sample under way; valid while due is DUE_SAMPLE. */
struct thread_pending {
	uint64_t tick, ns; /* the tick of the sample, and the begin of the tick's period */
	/* Ticks from `tick` on that are counted as expected, but not yet as captured, filled or
	 * missed. */
	uint64_t unaccounted;
	uint64_t next_look; /* the thread is looked at again when unaccounted is so many */
	/* The first tick after `tick` at which the thread had not stopped; 0: none yet. */
	uint64_t later_tick, later_ns;
	uint64_t due_ns, came_ns; /* the tick of the interrupt was due, and came */
	/* A mark that was read after the look, just before the interrupt, and when. */
	struct activity_mark mark;
	bool mark_known;
	uint64_t mark_ns;
	size_t promised; /* the thread's part of capture_sink.promised */
	/* The look found the thread blocked at this place, and interrupted it nevertheless. */
	bool was_blocked;
	struct activity_place blocked_at;
};

/* sleepers.h and look.h: the mark that was last read for a tick. */
struct thread_look {
	struct activity_mark mark;
	bool known; /* the last reading succeeded */
	uint64_t ns;
	unsigned int without_mark; /* number of looks since then without a reading */
	bool own_processor;	   /* the thread has a processor to itself (sleepers.c) */
	/* When that was last decided, and the mark of that time. */
	struct activity_mark own_since;
	uint64_t own_since_ns;
};

/* stop.h: the last stop, and the last sample that a stop gave; each field says which. */
struct thread_stop {
	/* While the mark is unchanged, the thread has not run, and the sample is valid. */
	struct activity_mark mark;
	bool known;   /* the mark was read, and the sample is valid (record_forget_sample) */
	uint64_t ns;  /* when the last stop was taken, with or without a sample */
	bool in_call; /* in a system call at that stop */
	bool woken;   /* in a call that has waited, and is not interrupted */
	bool waited;  /* in a call that waited until the interrupt */
	/*
	 * Registers of the last stop; but if the stop was at the first instruction of a signal
	 * handler, those of the code that the signal interrupted.
	 */
	uint64_t code[ARCH_REGS];
	int signal; /* the last stop delivered this signal, and code is valid; else 0 */
};

/* The words at sp by which waits.h recognises the caller of a function without a frame. */
#define WAITS_WORDS 2

/* waits.h */
struct thread_waits {
	/* Registers of the last stop in a blocked call, valid for samples at the same place. */
	bool place_known;
	struct activity_place place;
	uint64_t regs[ARCH_REGS];
	bool first_known; /* the place has the first argument */
	uint64_t words[WAITS_WORDS];
	/* The unwinder lacks the registers of a thread that is blocked at this sp and pc. */
	bool requested;
	uint64_t requested_sp, requested_pc;
	/* The thread's time slices (struct activity_mark) before it was last stopped for that. */
	bool was_stopped;
	uint64_t stopped_slices;
	/* A signal with a handler has ended a call here, and the call may be about to return. */
	bool failed;
	struct activity_place failed_at;
};

/*
 * crash.h: a stop that is not ended until capture detaches from the process. The kernel keeps the
 * stop's status (ptrace/tracee.h).
 */
struct thread_held {
	bool is;
	enum tracee_status status;
	int signal; /* to deliver, of TRACEE_SIGNAL and TRACEE_GROUP_STOP; else 0 */
};

/* record.h: what the reader of the ring knows of the thread. */
struct thread_reader {
	bool announced; /* the reader has the thread's RECORD_THREAD. Cleared by record_reset() */
	bool unknown;	/* a RECORD_MISSED was written since the last sample */
	bool ready;	/* the last record says that the thread is ready */
	uint64_t pointer;
	char comm[COMM_SIZE];
	uint64_t name_tick; /* the name is read again at this tick */
	uint64_t name_wait; /* ticks between that reading and the next one */
};

/* record.h: the stack, and the last copy of it. */
struct thread_stack {
	struct stack_hints hints; /* stack_hints.h */
	struct memory_seen seen_memory;
	uint64_t memory_tick; /* when seen_memory was emptied */
	/*
	 * The last sample: its bytes in the ring, the end of the stack in it, and the start of its
	 * second range (0: none).
	 */
	size_t last_size;
	uint64_t copied_top, copied_second;
};

/* observe.h: the samples of a thread that is not traced. */
struct thread_observed {
	uint64_t tick;	/* of its last sample; 0: none */
	uint64_t taken; /* samples since the last look */
	/* While the mark is unchanged, the thread has not run since the look after that sample. */
	struct activity_mark mark;
	bool mark_known;
	bool exits; /* the thread has ended: the look of this tick is its last one */
	/* A sample of this tick could not be written, and why. */
	uint64_t failed_tick;
	enum missed_reason reason;
	/* A sample for the next tick without one, and its bytes; NULL: none. */
	struct record_sample *kept;
	size_t kept_size;
};

struct thread {
	struct traced_process *target;
	struct thread *next, *prev; /* in the process's list of awake or sleeping threads */
	struct thread *next_pending, *prev_pending; /* tracees.h: in capture.pending */
	uint32_t tid;
	struct activity activity;

	bool asleep;
	struct thread_sleep sleep;

	enum thread_life life;		   /* tracees.h */
	enum thread_due due;		   /* tracees.h */
	enum thread_group_stop group_stop; /* stop.h */
	bool ended_resumed; /* the last stop ended a resumed call and consumed an interrupt; capture
			       has interrupted the thread again, so it stops before it runs code of
			       its own */
	bool may_dump;	    /* the thread may be writing a core: it is new, or got such a signal */
	bool options_due;   /* its ptrace options must be set at its next stop */
	uint8_t realtime;   /* priority.h: real-time priority; 0: none */

	struct thread_pending pending;
	struct thread_look look;
	struct thread_balance balance;
	struct thread_stop stop;
	struct thread_waits waits;
	struct thread_stack stack;
	struct thread_reader reader;
	/* thread_pointer.h: the thread pointer; 0: not known. */
	uint64_t pointer;

	struct resumed_call resumed; /* the system call that is being resumed */
	struct thread_held held;
	struct thread_observed observed;
};

#endif
