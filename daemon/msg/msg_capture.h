/*
 * What the broker and capture say to each other, and capture and unwind.
 * daemon/msg/msg.h says what holds for all messages.
 */
#ifndef DAEMON_MSG_MSG_CAPTURE_H
#define DAEMON_MSG_MSG_CAPTURE_H

#include "daemon/msg/msg.h"

/*
 * MSG_RING_MAKE, with a ring's id: make a ring. With it: capture's end of a
 * socket to the unwind process that is to read it. A ring of this id that
 * exists already is replaced: its reader died, so its targets start from
 * nothing in the new one.
 *
 * MSG_RING_MADE, with the id: the ring exists. With it: its memfd, sealed.
 *
 * MSG_RING_BROKEN, with the id: the ring's reader has sent something that
 * breaks a rule.
 */

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
 * MSG_TARGET_REMOVE, with a target's id: let go of this target alone. Its
 * RECORD_END is written, and when it is no longer traced, TARGET_GONE said. A
 * target that capture does not know has ended, and that has been said already.
 */

/*
 * MSG_CAPTURE_STOP: take what is pending, write RECORD_END for every target,
 * say MSG_CAPTURE_DONE and exit: the kernel detaches without stopping a thread.
 * With id CAPTURE_KEEP_SESSIONS: without RECORD_END, another capture will go on
 * with the sessions.
 */
#define CAPTURE_KEEP_SESSIONS 1

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
 * MSG_CHILD_BORN, with a pid: a target, or a child of one, has forked; capture
 * has attached to the child and lets it run. Only if MSG_INIT says so. The
 * broker makes the child a target if it is a process that capture traces; one
 * that has ended, or a thread, is no fault.
 */

/* MSG_CAPTURE_DONE: the answer to MSG_CAPTURE_STOP, and to nothing else. */

/*
 * MSG_RING_HEAD: records up to this number may be read. Sent a few times a
 * second, when much has come together, and when a target has ended or runs a
 * new program.
 *
 * MSG_RING_CREDIT: records up to this number have been read. Sent when that is
 * worth a wake.
 */

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

/* MSG_TARGET_ADD_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_CAPTURE_LIST(X)
#undef X
};

#endif
