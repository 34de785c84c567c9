/*
 * What the broker and capture say to each other, and capture and unwind.
 * Included by daemon/msg.h, which says what holds for all messages.
 */
#ifndef DAEMON_MSG_CAPTURE_H
#define DAEMON_MSG_CAPTURE_H

#include "daemon/msg.h"

/*
 * Make a ring. With it: capture's end of a socket to the unwind process that
 * is to read it. A ring of this id that exists already is replaced: its reader
 * died, so its targets start from nothing in the new one.
 */
struct msg_ring_make {
	struct msg_header h;
	uint32_t ring;
};

/* The ring exists. With it: its memfd, sealed. */
struct msg_ring_made {
	struct msg_header h;
	uint32_t ring;
};

/* The ring's reader has sent something that breaks a rule. */
struct msg_ring_broken {
	struct msg_header h;
	uint32_t ring;
};

/* Attach to a process. With it: a pidfd, so that the pid is no other's. */
struct msg_target_add {
	struct msg_header h;
	uint32_t target;
	uint32_t ring;
	int32_t pid;
	uint32_t slot; /* its counters' place in the heartbeat page */
	/* The reader wants to know its threads' pointers. */
	uint32_t wants_pointers;
	/* Look at it from the moment on that it executes a program. */
	uint32_t awaits_exec;
	/* Tick n is at epoch_ns + n * period_ns, CLOCK_MONOTONIC. */
	uint64_t epoch_ns;
	uint64_t period_ns;
};

/*
 * Look at a target at so many of every of_ticks ticks, spread evenly; 0 <
 * ticks <= of_ticks. A target that is gone is no fault.
 */
struct msg_target_rate {
	struct msg_header h;
	uint32_t target;
	uint32_t ticks;
	uint32_t of_ticks;
};

/*
 * Let go of this target alone: its RECORD_END is written, and when it is no
 * longer traced, TARGET_GONE said. One that capture does not know has ended,
 * and that has been said already.
 */
struct msg_target_remove {
	struct msg_header h;
	uint32_t target;
	uint32_t reserved;
};

/*
 * Take what is pending, write RECORD_END for every target, say
 * MSG_CAPTURE_DONE and exit: the kernel detaches without stopping a thread.
 * keep_sessions: without RECORD_END, another capture will go on with them.
 */
struct msg_capture_stop {
	struct msg_header h;
	uint32_t keep_sessions;
};

enum target_state {
	TARGET_ATTACHED = 1, /* all threads are seized */
	/*
	 * error says why: EPERM, EACCES, ESRCH, EBUSY (traced), ENOEXEC
	 * (32-bit: also later, after an exec). It is let go.
	 */
	TARGET_REFUSED,
	/* It has ended, or was let go of as asked; RECORD_END is written. */
	TARGET_GONE,
	TARGET_EXEC, /* a new program; RECORD_EXEC is written */
};

struct msg_target_state {
	struct msg_header h;
	uint32_t target;
	uint32_t state; /* enum target_state */
	int32_t error;	/* errno, with TARGET_REFUSED */
};

/*
 * A target, or a child of one, has forked; capture has attached to the child
 * and lets it run. Only if MSG_INIT says so. The broker makes it a target if it
 * is a process that capture traces; one that has ended, or a thread, is no
 * fault.
 */
struct msg_child_born {
	struct msg_header h;
	int32_t pid;
	uint32_t reserved;
};

/* The answer to MSG_CAPTURE_STOP, and to nothing else. */
struct msg_capture_done {
	struct msg_header h;
};

/*
 * Records up to here may be read. Sent a few times a second, when much has come
 * together, and when a target has ended or runs a new program.
 */
struct msg_ring_head {
	struct msg_header h;
	uint64_t head;
};

/* Records up to here have been read. Sent when that is worth a wake. */
struct msg_ring_credit {
	struct msg_header h;
	uint64_t tail;
};

/*
 * A hint to capture: what the walk of a sample with stack pointer sp needed of
 * the thread's stacks. The stack that the thread was on is needed up to top
 * (exclusive). second: from where on its own stack is needed, where the thread
 * goes on when its work on this one is over; 0: not at all. Capture checks both
 * whenever it uses them, and knows itself where a thread's own stack ends.
 */
struct msg_stack_hint {
	struct msg_header h;
	uint32_t target;
	uint32_t tid;
	uint64_t sp;
	uint64_t top;
	uint64_t second;
};

#endif
