/*
 * Messages between the broker and capture, and between capture and unwind.
 * daemon/msg/msg.h says what holds for all messages.
 */
#ifndef DAEMON_MSG_MSG_CAPTURE_H
#define DAEMON_MSG_MSG_CAPTURE_H

#include "daemon/msg/msg.h"

/*
 * MSG_RING_MAKE, with a ring's id: capture makes the ring. The message carries capture's end of
 * a socket to the unwind process that will read the ring. If a ring of this id exists, its
 * reader has died: the new ring replaces it, and capture starts its targets anew.
 *
 * MSG_RING_MADE, with the id: the ring exists. The message carries the ring's memfd, sealed.
 *
 * MSG_RING_BROKEN, with the id: the ring's reader has sent a message that breaks a rule.
 */

/* Attach to a process. The message carries a pidfd, since the pid alone could be reused. */
struct msg_target_add {
	struct msg_header h;
	uint32_t target;
	uint32_t ring;
	int32_t pid;
	uint32_t slot;			/* of its counters in the heartbeat page */
	uint32_t wants_thread_pointers; /* record each thread's pthread_self() */
	uint32_t awaits_exec; /* take samples only after the process has executed a program */
	/* Tick n is at epoch_ns + n * period_ns, CLOCK_MONOTONIC. */
	uint64_t epoch_ns;
	uint64_t period_ns;
};

/*
 * Of each of_ticks ticks in a row, take samples of the target at only sampled_ticks, evenly
 * spread. 0 < sampled_ticks <= of_ticks. Until the first of these messages capture takes samples
 * at each tick. Capture ignores the message if the target has ended.
 */
struct msg_target_rate {
	struct msg_header h;
	uint32_t target;
	uint32_t sampled_ticks;
	uint32_t of_ticks;
};

/*
 * MSG_TARGET_REMOVE, with a target's id: detach from this target. Capture writes its
 * RECORD_END, and sends TARGET_GONE when no thread of it is traced any more. Capture ignores
 * the message if it does not know the target: TARGET_GONE has been sent then.
 */

/*
 * MSG_CAPTURE_STOP: take the samples that are due, write RECORD_END for each target, send
 * MSG_CAPTURE_DONE and exit. The kernel detaches then, and stops no thread for that. With id
 * CAPTURE_KEEP_SESSIONS no RECORD_END is written: the next capture continues the sessions.
 */
#define CAPTURE_KEEP_SESSIONS 1

enum target_state {
	TARGET_ATTACHED = 1, /* all threads are seized */
	/*
	 * Capture is not attached, and has forgotten the target. error: EPERM, EACCES, ESRCH,
	 * EBUSY (another tracer), ENOEXEC (a 32-bit program, possibly after an exec).
	 */
	TARGET_REFUSED,
	TARGET_GONE, /* ended, or detached from as asked; RECORD_END is written */
	TARGET_EXEC, /* has executed a program; RECORD_EXEC is written */
};

struct msg_target_state {
	struct msg_header h;
	uint32_t target;
	uint32_t state; /* enum target_state */
	int32_t error;	/* errno, with TARGET_REFUSED */
};

/*
 * MSG_CHILD_BORN, with a pid: a target, or a descendant of one, has forked. Capture has
 * attached to the child and lets it run. Sent only if MSG_INIT has follow_children set. The broker
 * makes the child a target if the pid is a process that capture traces, and ignores a
 * process that has ended and a thread.
 */

/* MSG_CAPTURE_DONE: the answer to MSG_CAPTURE_STOP. */

/*
 * MSG_RING_HEAD: unwind may read records up to this number. Sent a few times a second, when
 * many records are waiting, and when a target has ended or has executed a program.
 *
 * MSG_RING_CREDIT: unwind has read records up to this number. Sent when so many were read
 * that it is worth a wake-up of capture.
 */

/*
 * How much of a thread's stacks unwind needed for a sample with stack pointer sp; capture
 * copies no more of them for the next samples. Capture checks the values at each use.
 */
struct msg_stack_hint {
	struct msg_header h;
	uint32_t target;
	uint32_t tid;
	uint64_t sp;
	uint64_t top; /* the end (exclusive) of what is needed of the stack that sp is on */
	/*
	 * The start of what is needed of the thread's own stack, if sp is on another one, as
	 * that of a coroutine; 0: nothing. Capture knows where a thread's own stack ends.
	 */
	uint64_t second;
};

/* MSG_TARGET_ADD_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_CAPTURE_LIST(X)
#undef X
};

#endif
