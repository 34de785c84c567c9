/*
 * Messages between the broker and capture, and between capture and unwind, and the page by which
 * capture shows that it works. daemon/msg/msg.h says what holds for all messages.
 *
 * A ring is a sealed memfd into which capture writes records and from which one unwind
 * process reads them (lib/base/ring.h). A record is a sample, a tick, or a change of a
 * thread or a target; lib/capture/sample.h has their types, RECORD_*. There is a ring for
 * each unwind process.
 */
#ifndef DAEMON_MSG_MSG_CAPTURE_H
#define DAEMON_MSG_MSG_CAPTURE_H

#include "daemon/msg/msg.h"
#include "lib/base/watch_part.h"
#include "lib/capture/counters.h"

/*
 * The heartbeat page: memory that capture writes and the broker reads (daemon/msg/page.h). The
 * page shows that capture makes progress, and from which target's memory capture is about to
 * read. It also has the counters of the targets, so that they survive a capture that is
 * killed.
 */

/* The maximum number of targets at a time. */
#define HEARTBEAT_SLOTS 256

/* The scheduling of capture's tracing thread: the strongest that the kernel permitted. */
enum heartbeat_scheduler {
	SCHEDULER_UNSET, /* the thread does not run yet */
	SCHEDULER_NORMAL,
	SCHEDULER_NICE,
	SCHEDULER_FIFO,
};

/* How often capture polled for the stops of a tick (daemon/capture/polling.h). */
struct heartbeat_polls {
	uint64_t useful;  /* polls during which all stops of the tick came */
	uint64_t useless; /* the other polls */
};

struct heartbeat {
	struct capture_beat beat;
	struct heartbeat_polls polls;
	uint32_t scheduler; /* enum heartbeat_scheduler */
	uint32_t cpu_quota; /* of capture's control group, percent of a processor; 0: none */
	struct capture_counters slots[HEARTBEAT_SLOTS]; /* by msg_target_add.slot */
};

/* Capture writes beat.time_ns at least this often. */
#define HEARTBEAT_EVERY_MS 100
/* If the last beat is this old, capture hangs, and the broker kills it. */
#define HEARTBEAT_DEAD_MS 1000

/*
 * MSG_RING_MAKE, with a ring's id: make the ring. The message carries capture's end of a
 * socket to the unwind process that will read the ring. If a ring of this id exists, its
 * reader has died: the new ring replaces it. The targets of the ring stay attached, and
 * capture announces and samples their threads anew (RECORD_RESET).
 *
 * MSG_RING_MADE, with the id: the ring exists. The message carries the ring's memfd, sealed.
 *
 * MSG_RING_BROKEN, with the id: the ring's reader has sent a message that breaks a rule.
 */

/*
 * MSG_TARGET_ADD: attach to a process. The message carries a pidfd, since the pid alone could
 * be reused.
 */
struct msg_target_add {
	struct msg_header h;
	uint32_t target;
	uint32_t ring;
	int32_t pid;
	uint32_t slot;			/* of its counters in the heartbeat page */
	uint32_t wants_thread_pointers; /* record each thread's pthread_self() */
	uint32_t awaits_exec; /* take samples only after the process has executed a program */
	/* Whose the process is: capture_set_user(). */
	uint32_t uid, files_uid;
	/* Signals whose handlers run traced: capture_ignore_crashes(). */
	uint32_t ignored_crashes;
	/* Tick n is at epoch_ns + n * period_ns, CLOCK_MONOTONIC. */
	uint64_t epoch_ns;
	uint64_t period_ns;
};

/*
 * MSG_TARGET_RATE: of each of_ticks ticks in a row, take samples of the target at only
 * sampled_ticks, evenly spread. 0 < sampled_ticks <= of_ticks. If is_withheld is not 0, capture
 * takes no samples at these ticks and counts them as missed (capture_withhold). Until the first of
 * these messages capture takes samples at each tick. Capture ignores the message if the target has
 * ended.
 */
struct msg_target_rate {
	struct msg_header h;
	uint32_t target;
	uint32_t sampled_ticks;
	uint32_t of_ticks;
	uint32_t is_withheld;
};

/*
 * MSG_TARGET_REMOVE, with a target's id: detach from this target. Capture writes its
 * RECORD_END, and sends TARGET_GONE when no thread of it is traced any more. Capture ignores
 * the message if it does not know the target: TARGET_GONE has been sent then.
 */

/*
 * MSG_CAPTURE_STOP: take the samples that are due, write RECORD_END for each target, send
 * MSG_CAPTURE_DONE and exit. When capture exits, the kernel detaches from all threads without
 * stopping them. With id CAPTURE_KEEP_SESSIONS capture writes no RECORD_END: the sessions of
 * the targets stay open, and the next capture process continues them.
 */
#define CAPTURE_KEEP_SESSIONS 1

enum target_state {
	TARGET_ATTACHED = 1, /* all threads are seized */
	/*
	 * Capture is not attached, and has forgotten the target. error: EPERM, EACCES, ESRCH,
	 * EBUSY (another tracer), ECANCELED (its parent runs a crash handler), ENOEXEC (a 32-bit
	 * program, possibly after an exec).
	 */
	TARGET_REFUSED,
	TARGET_GONE, /* ended, or detached from as asked; RECORD_END is written */
	TARGET_EXEC, /* has executed a program; RECORD_EXEC is written */
	/*
	 * A thread is about to run its handler of a crash signal, so capture has detached from the
	 * process and has forgotten the target, as with TARGET_REFUSED. Samples up to this moment
	 * are written, and no RECORD_END.
	 */
	TARGET_CRASHED,
	/* The same, but capture could not detach: the handler runs traced. */
	TARGET_CRASHES_TRACED,
	/* Has other rights than MSG_TARGET_ADD says: no samples are taken until its next exec. */
	TARGET_OTHER_RIGHTS,
};

/* MSG_TARGET_STATE: the state of a target has changed. */
struct msg_target_state {
	struct msg_header h;
	uint32_t target;
	uint32_t state; /* enum target_state */
	int32_t error;	/* errno, with TARGET_REFUSED */
	/* With TARGET_CRASHED and TARGET_CRASHES_TRACED: the thread and the signal. */
	uint32_t tid;
	int32_t signal;
	/* With TARGET_CRASHED: see struct capture_crash (lib/capture/options.h). */
	uint32_t blocks_signal;
	uint32_t awaits_exec;
};

/*
 * MSG_CHILD_BORN, with a pid as the id: a target, or a descendant of a target, has forked.
 * Capture has attached to the child and lets it run. Sent only if MSG_INIT has
 * follow_children set. The broker makes the child a target. It ignores the pid if it is a
 * thread, if the process has ended, or if capture does not trace the process.
 *
 * With the id 0: capture has detached from all processes for a moment (lib/capture/detach.h), in
 * which children may have been born without a tracer. The broker looks for them.
 */

/*
 * MSG_EXEC_HELD, with a pid as the id: a target, or a child of one, has executed a program, and
 * capture holds it before the program's first instruction until MSG_EXEC_DECIDED, for a second at
 * most: then capture leaves it. Sent after MSG_CHILD_BORN of the process.
 *
 * MSG_EXEC_DECIDED: the process goes on as a tracee, or capture leaves it, because its program
 * cannot run traced (LeakSanitizer). A target that is left is reported as TARGET_GONE. Capture
 * ignores the message if it knows neither a held process nor a target of this pid.
 */
enum exec_decision {
	EXEC_LEFT,
	EXEC_GOES_ON,
	/* Also every later process of the same user that executes this file: it is not held. */
	EXEC_ALWAYS_GOES_ON,
	EXEC_DECISION_END,
};
struct msg_exec_decided {
	struct msg_header h;
	int32_t pid;
	uint32_t decision; /* enum exec_decision */
};

/* MSG_CAPTURE_DONE: the answer to MSG_CAPTURE_STOP. */

/*
 * MSG_RING_HEAD, with a position: unwind may read the records before this position. A
 * position is the number of bytes written to the ring since it was made, pads included
 * (lib/base/ring.h). Sent a few times a second, when many records are waiting, and when a
 * target has ended or has executed a program.
 *
 * MSG_RING_CREDIT, with a position: the credit, by which unwind returns ring space to
 * capture. unwind has read all records before this position, and capture may overwrite them.
 * Sent when so much was read that it is worth a wake-up of capture.
 */

/*
 * MSG_STACK_HINT: how much of a thread's stacks unwind needed for a sample with stack
 * pointer sp (daemon/unwind/hints.h). Capture copies no more of the stacks for the next
 * samples. Capture checks the values at each use, because unwind may be hostile.
 */
struct msg_stack_hint {
	struct msg_header h;
	uint32_t target;
	uint32_t tid;
	uint64_t sp;
	uint64_t top; /* the end (exclusive) of what is needed of the stack that sp is on */
	/*
	 * If sp is on another stack than the thread's own, such as that of a coroutine: the start
	 * of what is needed of the thread's own stack, up to its end, which capture knows; 0:
	 * nothing is needed.
	 */
	uint64_t second;
};

/*
 * MSG_WANT_REGISTERS: the walk of a sample with these sp and pc could not leave the first function,
 * whose return address is in a register that the sample lacks (aarch64). Capture stops a thread
 * that is blocked there, within its limits (lib/capture/waits.h).
 */
struct msg_want_registers {
	struct msg_header h;
	uint32_t target;
	uint32_t tid;
	uint64_t sp, pc;
};

/*
 * MSG_WATCH: report changes of these parts of the target's memory (RECORD_WATCHED). Replaces the
 * list that unwind sent before. n is at most WATCH_PARTS, and each size from 1 to WATCH_BYTES;
 * anything else breaks a rule. Capture cannot check what is at an address.
 */
struct msg_watch {
	struct msg_header h;
	uint32_t target;
	uint32_t list; /* its number, which the records carry */
	uint32_t n;
	uint32_t reserved;
	struct watch_part parts[WATCH_PARTS];
};

/* MSG_TARGET_ADD_SIZE and so on: the size of each type's struct. */
enum {
#define X(type, name, fds) type##_SIZE = sizeof(struct name),
	MSG_CAPTURE_LIST(X)
#undef X
};

#endif
