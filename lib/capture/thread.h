/*
 * Inside lib/capture: what is known of a thread.
 */
#ifndef LIB_CAPTURE_THREAD_H
#define LIB_CAPTURE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/capture/proc/activity.h"
#include "lib/capture/ptrace/arch.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/restart/rest.h"
#include "lib/capture/sample.h"
#include "lib/capture/stack_hints.h"

struct target;

enum thread_life {
	THREAD_NEW,	    /* not looked at yet */
	THREAD_AWAITS_TURN, /* the same; it was there before capture, and waits for its turn */
	THREAD_SEEN,	    /* at a tick */
	THREAD_DEAD,	    /* the leader has exited, its threads have not */
};

/* The stop that is still to come from an interrupt of capture. */
enum thread_due {
	DUE_NOTHING,
	DUE_STOP,   /* the thread's sample was taken without that stop, or given up */
	DUE_SAMPLE, /* the stop gives the sample of pending_tick */
};

/* A group-stop interrupts calls, and so does what follows it. */
enum thread_group_stop {
	GROUP_STOP_NONE,
	GROUP_STOP_IN,
	GROUP_STOP_AFTER, /* the thread may not have left the kernel since */
};

struct thread {
	struct target *target;
	struct thread *next, *prev; /* of the target's awake or asleep */
	struct thread *next_pending, *prev_pending;
	uint32_t tid;

	struct activity activity;
	/* It has not run since it was found blocked, if this is still so. */
	bool asleep;
	struct activity_mark mark;
	struct activity_place asleep_at;
	uint64_t asleep_since_ns;

	enum thread_life life;
	enum thread_due due;
	enum thread_group_stop group_stop;
	bool announced;	  /* the reader has its RECORD_THREAD */
	bool unknown;	  /* and a RECORD_MISSED since the last sample */
	bool ended_rest;  /* with its last stop, and has run nothing since */
	bool may_dump;	  /* a core: it had a signal for that, or is new to us */
	bool options_due; /* to be set at its next stop */
	uint8_t realtime; /* its priority; 0: it has none */

	/*
	 * With DUE_SAMPLE, the sample will be of pending_tick; unaccounted:
	 * ticks since then, that one included, that are in no counter but
	 * expected.
	 */
	uint64_t pending_tick;
	uint64_t pending_ns; /* of that tick */
	/* The first tick after it at which it had not stopped; 0: none yet. */
	uint64_t later_tick, later_ns;
	/* When the tick of its interrupt was due, and when it came. */
	uint64_t due_ns, came_ns;
	uint64_t interrupt_ns; /* when the interrupt was sent */
	/* Run and wait times as last read for a tick, and when. */
	struct activity_mark look;
	bool look_known;
	uint64_t look_ns;
	unsigned int unasked; /* looks since then */
	/*
	 * It has a processor to itself, as far as is known; run and wait times
	 * as they were when that was last decided.
	 */
	bool alone;
	struct activity_mark alone_since;
	uint64_t alone_since_ns;
	/*
	 * The same, read during the stop that gave the last sample: until they
	 * change the thread has not run, and the sample holds.
	 */
	struct activity_mark stop;
	bool stop_known;
	uint64_t stop_ns;  /* when that stop was taken */
	bool in_call;	   /* in a system call, at that stop */
	bool only_waits;   /* in such a call (syscalls.h) */
	bool told_running; /* the last record of the thread says that it runs */
	/* It was blocked here when it was looked at, and woken in between. */
	bool was_blocked;
	struct activity_place blocked_at;
	uint64_t unaccounted;
	uint64_t next_look; /* at so many */
	size_t promised;    /* its part of the sink's */

	struct stack_hints hints;
	struct memory_seen seen_memory;
	uint64_t memory_tick;	/* when that was emptied */
	size_t last_size;	/* ring bytes of its last sample */
	uint64_t copied_top;	/* end of the stack in that */
	uint64_t copied_second; /* start of the second range; 0: it has none */

	/* Registers of its last stop out of a wait, good for the same place. */
	bool place_known;
	struct activity_place place;
	uint64_t regs[ARCH_REGS];

	uint64_t pointer; /* its thread pointer; 0: not known */

	/* As the reader knows them. */
	uint64_t told_pointer;
	char comm[COMM_SIZE];
	uint64_t name_tick; /* when it is read again */
	uint64_t name_wait; /* ticks between that and the next time */

	struct rest rest; /* of a call that we took it out of */
};

#endif
