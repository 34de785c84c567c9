/*
 * The state of one thread of a target. Private to lib/capture.
 *
 * A "mark" is a reading of the thread's run time, wait time and time slices (proc/activity.h):
 * equal marks mean that the thread has not run in between.
 */
#ifndef LIB_CAPTURE_THREAD_H
#define LIB_CAPTURE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/capture/proc/activity.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/restart/resume.h"
#include "lib/capture/sample.h"
#include "lib/capture/stack_hints.h"

struct traced_process;

enum thread_life {
	THREAD_NEW,	    /* not looked at yet */
	THREAD_AWAITS_TURN, /* not looked at yet; it existed before capture attached (tick.c) */
	THREAD_SEEN,	    /* looked at at a tick */
	THREAD_DEAD,	    /* the leader has exited, its threads have not */
};

/* The stop that is still to come from an interrupt of capture. */
enum thread_due {
	DUE_NOTHING,
	DUE_STOP,   /* the thread's sample was taken without that stop, or given up */
	DUE_SAMPLE, /* the stop gives the sample of pending_tick */
};

/* A group-stop interrupts system calls, and so does what follows it. */
enum thread_group_stop {
	GROUP_STOP_NONE,
	GROUP_STOP_IN,
	GROUP_STOP_AFTER, /* the thread may not have left the kernel since */
};

struct thread {
	struct traced_process *target;
	struct thread *next, *prev; /* in the process's list of awake or sleeping threads */
	struct thread *next_pending, *prev_pending;
	uint32_t tid;

	struct activity activity;
	/*
	 * The thread was found blocked at asleep_at, at asleep_since_ns, with this mark. It has not
	 * run since if its mark is still the same.
	 */
	bool asleep;
	struct activity_mark mark;
	struct activity_place asleep_at;
	uint64_t asleep_since_ns;

	enum thread_life life;
	enum thread_due due;
	enum thread_group_stop group_stop;
	bool announced;	    /* the reader has the thread's RECORD_THREAD */
	bool unknown;	    /* a RECORD_MISSED was written since the last sample */
	bool ended_resumed; /* the last stop ended a resumed call; the thread has not run since */
	bool may_dump;	    /* the thread may be writing a core: it is new, or got such a signal */
	bool options_due;   /* its ptrace options must be set at its next stop */
	uint8_t realtime;   /* real-time priority; 0: none */

	/* Valid with DUE_SAMPLE: the tick of the sample. */
	uint64_t pending_tick, pending_ns;
	/* Ticks from pending_tick on that only the counter `expected` contains. */
	uint64_t unaccounted;
	uint64_t next_look; /* the thread is looked at again when unaccounted is so many */
	/* The first tick after pending_tick at which the thread had not stopped; 0: none yet. */
	uint64_t later_tick, later_ns;
	/*
	 * Times of the interrupt: when its tick was due, when the tick came, and when the interrupt
	 * was sent.
	 */
	uint64_t due_ns, came_ns, interrupt_ns;
	size_t promised; /* the thread's part of capture_sink.promised */

	/* The mark that was last read for a tick. */
	struct activity_mark look;
	bool look_known;
	uint64_t look_ns;
	unsigned int looks_without_mark; /* number of looks since then without a reading */
	/* The thread has a processor to itself (sleepers.c), decided when this mark was read. */
	bool own_processor;
	struct activity_mark own_processor_since;
	uint64_t own_processor_since_ns;
	/*
	 * The mark of the stop that gave the last sample. While the mark is unchanged, the thread
	 * has not run, and the sample is valid.
	 */
	struct activity_mark stop;
	bool stop_known;
	uint64_t stop_ns;      /* when that stop was taken */
	bool in_call;	       /* in a system call at that stop */
	bool only_waits;       /* in a call that only waits (restart/syscalls.h) */
	bool recorded_running; /* the thread's last record says that it runs */
	/* The thread was blocked at this place at the look, and was interrupted nevertheless. */
	bool was_blocked;
	struct activity_place blocked_at;

	struct stack_hints hints;
	struct memory_seen seen_memory;
	uint64_t memory_tick; /* when seen_memory was emptied */
	/*
	 * The last sample: its bytes in the ring, the end of the stack in it, and the start of its
	 * second range (0: none).
	 */
	size_t last_size;
	uint64_t copied_top, copied_second;

	/* Registers of the last stop in a blocked call, valid for samples at the same place. */
	bool place_known;
	struct activity_place place;
	uint64_t regs[ARCH_REGS];

	uint64_t pointer; /* the thread pointer; 0: not known */

	/* The pointer that the reader knows. */
	uint64_t recorded_pointer;
	char comm[COMM_SIZE];
	uint64_t name_tick; /* the name is read again at this tick */
	uint64_t name_wait; /* ticks between that reading and the next one */

	struct resumed_call resumed; /* the system call that is being resumed */
};

#endif
