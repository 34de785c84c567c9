/*
 * Messages between the broker and capture, and between capture and unwind. Also the heartbeat page,
 * by which capture shows that it works. daemon/msg/msg.h says what holds for all messages.
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
 * read. The page also has the counters of the targets, so that the broker still has them after
 * capture was killed.
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
	struct capture_beat beat; /* the time of the last beat, and whose memory is read now */
	struct heartbeat_polls polls;
	uint32_t scheduler; /* enum heartbeat_scheduler */
	uint32_t cpu_quota; /* of capture's control group, percent of a processor; 0: none */
	struct capture_counters slots[HEARTBEAT_SLOTS]; /* the index is msg_target_add.slot */
};

/* Capture writes beat.time_ns at least this often. */
#define HEARTBEAT_EVERY_MS 100
/* If the last beat is this old, capture hangs, and the broker kills it. */
#define HEARTBEAT_DEAD_MS 1000

/*
 * MSG_RING_MAKE, with a ring's id: make the ring. The message carries capture's end of a
 * socket to the unwind process that will read the ring. If capture already has a ring of this id,
 * the reader of that ring has died, and the new ring replaces it. The targets of the ring stay
 * attached, and capture announces and samples all their threads anew (RECORD_RESET).
 *
 * MSG_RING_MADE, with the id: the ring exists. The message carries the ring's memfd, sealed.
 *
 * MSG_RING_BROKEN, with the id: the unwind process that reads the ring has sent capture a message
 * that breaks a rule.
 */

/*
 * MSG_TARGET_ADD: attach to a process. The message carries a pidfd of the process, since the pid
 * could be reused. The answer is a MSG_TARGET_STATE: TARGET_ATTACHED or TARGET_REFUSED; or
 * TARGET_CRASHED, if the process is a child of MSG_CHILD_BORN that has crashed meanwhile.
 */
struct msg_target_add {
	struct msg_header h;
	uint32_t target; /* the id of the target in all messages */
	uint32_t ring;	 /* the id of the ring for its records */
	int32_t pid;
	/*
	 * The index of its counters in the heartbeat page; capture sets the counters to zero. If a
	 * target that capture has not forgotten has this slot, the message breaks a rule.
	 */
	uint32_t slot;
	uint32_t wants_thread_pointers; /* record each thread's pthread_self() */
	uint32_t awaits_exec; /* take samples only after the process has executed a program */
	/*
	 * The user of the process, and the owner of its files in /proc. If the process has other
	 * rights than these, capture sends TARGET_OTHER_RIGHTS (capture_set_user()).
	 */
	uint32_t uid, files_uid;
	/* Bit n - 1: capture stays attached at a crash by signal n (capture_ignore_crashes()). */
	uint32_t ignored_crashes;
	/*
	 * Period n begins at epoch_ns + n * period_ns, CLOCK_MONOTONIC. Tick n comes at a moment
	 * of period n that capture chooses (daemon/capture/ticker.h). Both values are the same for
	 * all targets.
	 */
	uint64_t epoch_ns;
	uint64_t period_ns;
};

/*
 * MSG_TARGET_RATE: take samples of the target at sampled_ticks of every of_ticks ticks, evenly
 * spread: with 2 and 5 at 2 of every 5 ticks. 0 < sampled_ticks <= of_ticks. Before the first
 * MSG_TARGET_RATE capture takes samples at every tick. If is_withheld is not 0, capture takes no
 * samples, and counts the samples of these ticks as missed (capture_withhold()). Capture ignores
 * the message if the target has ended.
 */
struct msg_target_rate {
	struct msg_header h;
	uint32_t target;
	uint32_t sampled_ticks;
	uint32_t of_ticks;
	uint32_t is_withheld;
};

/*
 * MSG_TARGET_REMOVE, with a target's id: detach from this target. Capture writes RECORD_END of the
 * target, and sends TARGET_GONE when it traces no thread of the target any more. Capture ignores
 * the message if it has forgotten the target (enum target_state says when).
 */

/* With msg_init.uses_perf: the bytes of a stack that the kernel copies into a sample. */
#define CAPTURE_PERF_STACK_BYTES (16u * 1024)

/*
 * MSG_CAPTURE_STOP: take the samples that are due, write RECORD_END for each target, send
 * MSG_CAPTURE_DONE and exit. When capture exits, the kernel detaches from all threads without
 * stopping them. With id CAPTURE_KEEP_SESSIONS capture writes no RECORD_END: the sessions of
 * the targets stay open, and the next capture process continues them.
 */
#define CAPTURE_KEEP_SESSIONS 1

enum target_state {
	TARGET_ATTACHED = 1, /* capture is attached, to some threads maybe only at later ticks */
	/*
	 * Capture is not attached, and has forgotten the target. error: EPERM, EACCES, ESRCH,
	 * ENOMEM, EMFILE, ENFILE, EBUSY (another tracer), ECANCELED (its parent runs a crash
	 * handler), ENOEXEC (a 32-bit program). EBUSY and ENOEXEC can also come after
	 * TARGET_ATTACHED: another tracer has attached, or the process has executed a 32-bit
	 * program.
	 */
	TARGET_REFUSED,
	/*
	 * The process has ended, or capture has detached from it as asked. RECORD_END is written,
	 * and capture has forgotten the target.
	 */
	TARGET_GONE,
	TARGET_EXEC, /* the process has executed a program; RECORD_EXEC is written */
	/*
	 * A thread is about to run its handler of a crash signal. So capture has detached from the
	 * process, because a crash reporter may want to trace it, and has forgotten the target. The
	 * samples up to this moment are written, but no RECORD_END.
	 */
	TARGET_CRASHED,
	/* A thread is about to run its handler of a crash signal, and capture stays attached. */
	TARGET_CRASHES_TRACED,
	/*
	 * The process has other rights than MSG_TARGET_ADD says. Capture stays attached, and takes
	 * no samples; capture_set_user() says until when.
	 */
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
 * MSG_CHILD_BORN, with the pid of a child as the id: a target, or a descendant of a target, has
 * forked this child. Capture has attached to the child and lets it run. Sent only if
 * follow_children is set in MSG_INIT. The broker makes the child a target. The broker ignores the
 * message if the pid is that of a thread, or if capture does not trace the process, which may have
 * ended.
 *
 * With the id 0: capture may not know of some children, because capture has detached from all
 * processes for a moment (lib/capture/detach.h), or has lost records of perf. The broker looks for
 * the children.
 */

/*
 * MSG_EXEC_HELD, with a pid as the id: this process, a target or a child of MSG_CHILD_BORN, has
 * executed a program. Capture holds the process before the program's first instruction until
 * MSG_EXEC_DECIDED. If no decision comes within a second, capture detaches, as for EXEC_LEFT. For a
 * child, MSG_CHILD_BORN comes before MSG_EXEC_HELD.
 *
 * MSG_EXEC_DECIDED: the decision about a held process. If capture holds no process of this pid any
 * more, EXEC_LEFT detaches from the target of this pid, if there is one; all other decisions do
 * nothing.
 */
enum exec_decision {
	/*
	 * Capture detaches from the process, because the program cannot run traced (it has
	 * LeakSanitizer), or because the broker does not know whether it can. If the process is a
	 * target, capture reports TARGET_GONE.
	 */
	EXEC_LEFT,
	EXEC_GOES_ON, /* the process goes on as a tracee */
	/* As EXEC_GOES_ON; and processes of this user that execute this file later are not held. */
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
 * target has ended or has executed a program. Where it needs what capture has not announced yet,
 * unwind takes the position from the ring's memory.
 *
 * MSG_RING_CREDIT, with a position: unwind has read all records before this position, and capture
 * may overwrite them. Sent when unwind has read enough to be worth a wake-up of capture.
 */

/*
 * MSG_STACK_HINT: which part of a thread's stacks unwind needed for a sample with stack pointer sp
 * (daemon/unwind/hints.h). At the next samples of the thread, capture copies from the stack pointer
 * up to top, and the second range if there is one. Capture checks the values at each use, because
 * unwind may be hostile.
 */
struct msg_stack_hint {
	struct msg_header h;
	uint32_t target;
	uint32_t tid;
	uint64_t sp;
	uint64_t top; /* the end (exclusive) of the part of the stack of sp */
	/*
	 * The start of the second range, which ends with the thread's own stack; 0: there is no
	 * second range. Unwind needs the range if sp is on another stack, such as a coroutine's.
	 */
	uint64_t second;
};

/*
 * MSG_WANT_REGISTERS: stop the thread while it is blocked at this sp and pc, and read all its
 * registers. Capture samples a blocked thread without a stop, so the sample can lack all registers
 * but sp and pc. On aarch64 the return address of the function at pc can be in a register; without
 * this register the walk ends at the function. lib/capture/waits.h says how often capture stops a
 * thread for this.
 */
struct msg_want_registers {
	struct msg_header h;
	uint32_t target;
	uint32_t tid;
	uint64_t sp, pc;
};

/*
 * MSG_WATCH: report changes of these parts of the target's memory (RECORD_WATCHED). The list
 * replaces the list that unwind has sent for the target before. n is at most WATCH_PARTS, and each
 * size is from 1 to WATCH_BYTES; anything else breaks a rule. Addresses are not checked.
 */
struct msg_watch {
	struct msg_header h;
	uint32_t target;
	uint32_t list; /* the number of the list; capture repeats it in each RECORD_WATCHED */
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
