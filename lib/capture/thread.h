/*
 * The state of one thread of a target. Private to lib/capture.
 *
 * struct thread consists of parts. The comment at each part names the modules that write it.
 *
 * A look is the check of a thread at a tick, from its files in /proc. A mark is a reading of the
 * thread's run time, wait time and time slices (proc/activity.h): equal marks mean that the thread
 * has not run in between. Times (_ns) are by capture_options.now_ns; ticks are numbers.
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

/* A thread goes through these states in this order, and may skip some. */
enum thread_life {
	/*
	 * Not looked at yet. The thread existed before capture attached. Such threads get their
	 * first samples in turns, some at each tick (struct first_samples).
	 */
	THREAD_AWAITS_TURN,
	THREAD_NEW,  /* its first look is still to come */
	THREAD_SEEN, /* has had a look */
	THREAD_DEAD, /* the thread is a leader that has exited; other threads of its process live */
};

/* The stop that capture expects, because it has interrupted the thread. */
enum thread_due {
	DUE_NOTHING, /* capture has no interrupt under way */
	DUE_STOP,    /* the stop gives no sample: the sample was given up or taken without the
			stop, or the interrupt had another reason */
	DUE_SAMPLE,  /* the stop gives the sample of pending.tick */
};

/*
 * A group-stop (all threads stopped by SIGSTOP and the like) interrupts system calls even without a
 * tracer, so capture does not repair these calls. When the group-stop ends, the tracee stops once
 * more, which interrupts its call in the same way. GROUP_STOP_AFTER lasts from then until capture
 * sees that the thread has left the kernel.
 */
enum thread_group_stop {
	GROUP_STOP_NONE,
	GROUP_STOP_IN,	  /* the thread is in a group-stop */
	GROUP_STOP_AFTER, /* since the group-stop the thread may have stayed in the kernel */
};

/* sleepers.h: the wait of a sleeping thread (thread.asleep). */
struct thread_sleep {
	struct activity_mark mark;   /* read before the look that found the thread blocked */
	struct activity_place place; /* where that look found the thread blocked */
	uint64_t since_ns;	     /* when the thread became a sleeping one */
};

/* look.h and tracees.h: the sample under way; valid while due is DUE_SAMPLE. */
struct thread_pending {
	uint64_t tick, ns; /* the tick of the sample, and the begin of the tick's period */
	/*
	 * Number of ticks, from `tick` on, that this sample counts for. If the sample is taken, one
	 * of them is captured and the others are filled; otherwise all are missed. If the thread is
	 * a leader that has died, only `tick` counts.
	 */
	uint64_t unaccounted;
	uint64_t next_look; /* the thread has its next look when unaccounted reaches this */
	/*
	 * The first tick after the interrupt's own at which the thread had not stopped yet, and the
	 * begin of the period of that tick. later_ns 0: no such tick has come.
	 */
	uint64_t later_tick, later_ns;
	/* Of the interrupt's tick: when it was due, and when the tracer began to work for it. */
	uint64_t due_ns, came_ns;
	/* The mark read after the look, just before the interrupt, and the time of that reading. */
	struct activity_mark mark;
	bool mark_known;
	uint64_t mark_ns;
	size_t promised; /* ring bytes reserved: the thread's part of capture_sink.promised */
	/* The look found the thread blocked here, and capture interrupted it nevertheless. */
	bool was_blocked;
	struct activity_place blocked_at;
};

/* sleepers.h and look.h: the mark that was last read for a tick. */
struct thread_look {
	struct activity_mark mark;
	bool known;		   /* the last reading succeeded */
	uint64_t ns;		   /* time of that reading */
	unsigned int without_mark; /* number of looks since that reading */
	bool own_processor;	   /* the thread has a processor to itself (sleepers.c) */
	/* When own_processor was last decided, and the mark of that time. */
	struct activity_mark own_since;
	uint64_t own_since_ns;
};

/* stop.h: whether the thread may be writing a core dump. An interrupt would harm the dump. */
struct thread_dump {
	/* The thread was just seized, or its last stop delivered the signal. */
	bool possible;
	int signal; /* its default action dumps core (signal(7)); 0: the thread was just seized */
};

/* stop.h: the last stop, and the last sample that a stop gave; each field says which. */
struct thread_stop {
	/* Of the last sample: while the mark is unchanged, the thread has not run since. */
	struct activity_mark mark;
	bool known;   /* the mark was read, and the sample is valid (record_forget_sample) */
	uint64_t ns;  /* when capture began to handle the last stop, with or without a sample */
	bool in_call; /* of the last sample: in a system call */
	bool woken;   /* of the last sample: in a call whose wait had ended by itself */
	bool waited;  /* of the last sample: in a call that waited until the stop */
	/*
	 * Registers of the last stop, by DWARF number. If that stop was at the first instruction of
	 * a signal handler, these are the registers of the code that the signal interrupted.
	 */
	uint64_t code[ARCH_REGS];
	int signal; /* the last stop delivered this signal, and code is valid; else 0 */
};

/* The words at sp by which waits.h recognises the caller of a function without a frame. */
#define WAITS_WORDS 2

/* waits.h: what stops have shown of the thread's waits. */
struct thread_waits {
	/* The last stop in a blocked call. place_known: samples of the same place use regs. */
	bool place_known;
	struct activity_place place;
	uint64_t regs[ARCH_REGS];
	bool first_known;	     /* place.arguments[0] is valid */
	uint64_t words[WAITS_WORDS]; /* the words at sp at that stop */
	/* unwind has requested the registers for a wait at this sp and pc. */
	bool requested;
	uint64_t requested_sp, requested_pc;
	/*
	 * was_stopped: capture has stopped the thread for such a request. stopped_slices: the
	 * thread's time slices (struct activity_mark) before the last such stop.
	 */
	bool was_stopped;
	uint64_t stopped_slices;
	/* A signal with a handler has ended the call at failed_at, which then returns EINTR. */
	bool failed;
	struct activity_place failed_at;
};

/* crash.h: the stop in which the thread stays until capture detaches from its process. */
struct thread_held {
	bool is; /* the thread is held */
	enum tracee_status status;
	int signal; /* of tracee_classify(); the detach delivers it if status is TRACEE_SIGNAL */
};

/* record.h: what the reader of the ring knows of the thread. */
struct thread_reader {
	bool announced;	  /* the reader has the thread's RECORD_THREAD. Cleared by record_reset() */
	bool unknown;	  /* a RECORD_MISSED is the last record about its stack */
	bool ready;	  /* the last record says: runnable without a processor */
	uint64_t pointer; /* thread.pointer when the last RECORD_THREAD was written */
	char comm[COMM_SIZE];
	uint64_t name_tick; /* the name is read again at this tick */
	uint64_t name_wait; /* name_tick is 1 to 2 times this many ticks after the last reading */
};

/* record.h: the stack, and the last copy of it. */
struct thread_stack {
	struct stack_hints hints;	/* how much of the stack to copy: stack_hints.h */
	struct memory_seen seen_memory; /* stack pages that are in memory: proc/memory.h */
	uint64_t memory_tick;		/* when seen_memory was emptied */
	/*
	 * The last sample: its bytes in the ring, the end of the stack in it, and the start of its
	 * second range of stack (0: none).
	 */
	size_t last_size;
	uint64_t copied_top, copied_second;
};

/* observe.h: the samples of a thread that is not traced. */
struct thread_observed {
	uint64_t tick;	/* of its last sample; 0: none */
	uint64_t taken; /* samples since the last look */
	/* Of the look after the last sample: unchanged while the thread has not run since. */
	struct activity_mark mark;
	bool mark_known;
	bool exits; /* the thread has ended: the next look removes it */
	/* The tick of the last sample that could not be written, and why. */
	uint64_t failed_tick;
	enum missed_reason reason;
	/* A sample kept for the next tick without a sample; owned by the thread. NULL: none. */
	struct record_sample *kept;
	size_t kept_size; /* bytes */
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
	/*
	 * The last stop ended a resumed call (restart/resume.h) and consumed an interrupt. Capture
	 * has interrupted the thread again, so it stops before it runs code of its own.
	 */
	bool ended_resumed;
	struct thread_dump dump;
	bool options_due; /* its ptrace options must be set at its next stop */
	uint8_t realtime; /* priority.h: real-time priority; 0: none */

	struct thread_pending pending;
	struct thread_look look;
	struct thread_balance balance;
	struct thread_stop stop;
	struct thread_waits waits;
	struct thread_stack stack;
	struct thread_reader reader;
	/* thread_pointer.h: pthread_self(3); 0: not known. */
	uint64_t pointer;

	struct resumed_call resumed; /* the system call that is being resumed: restart/resume.h */
	struct thread_held held;
	struct thread_observed observed;
};

#endif
