/*
 * Detaches from a process in which a thread is about to run its handler of a crash signal, such as
 * SIGSEGV (tracee_signal_crashes), so that a crash reporter can trace the process.
 *
 * A crash reporter is a helper process that the handler starts or informs, and that attaches to the
 * threads of the crashed process. A thread has one tracer, so capture must have detached from all
 * threads before the handler runs. reap.c calls this module at the signal-delivery-stop of the
 * crashed thread:
 *
 * 1. crash_is_due() and crash_begin(). From here on a thread of the process that stops is held: it
 *    stays in its stop. Its interrupted system call is repaired as at any stop, a resumed call
 *    (restart/resume.h) returns what it has so far, and a timed wait begins anew.
 * 2. crash_interrupt(), repeated until the other threads are held, too.
 * 3. crash_enter_handler(), and crash_is_in_handler() until the crashed thread is held at the first
 *    instruction of its handler.
 * 4. crash_detach(). Other targets are not touched: their stops are handled meanwhile. The next
 *    targets_free_ended() reports the crash (capture_options.crashed) and frees the target. If
 *    capture_remove() was called before the crash, it reports CAPTURE_GONE instead.
 *
 * If a thread does not stop within the limits below (a parent in vfork(2), uninterruptible sleep),
 * reap.c calls crash_may_end_tracer(). If the result is true, the tracing thread ends: the kernel
 * then detaches all tracees (detach.h), so other targets are untraced, too, for some milliseconds.
 * For that reason crash_may_end_tracer() limits these ends for each user. If the result is false,
 * reap.c calls crash_runs_traced().
 *
 * Nothing is allocated for the process meanwhile. Only two of its files are opened:
 * /proc/TID/status of the crashed thread, and /proc/PID/task if threads were born just before.
 */
#ifndef LIB_CAPTURE_CRASH_H
#define LIB_CAPTURE_CRASH_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/util.h"
#include "lib/capture/options.h"
#include "lib/capture/ptrace/tracee.h"

struct capture;
struct thread;
struct traced_process;

/*
 * Limits of the waits for the stops of the process's threads. CRASH_HOLD_NS: steps 2 and 3
 * together. CRASH_STOP_NS: since the last stop, if none of the threads that have not stopped is
 * runnable. A runnable one stops when it gets a processor, which takes long on an overloaded
 * machine. On an idle machine 1,000 threads take 50 ms.
 */
#define CRASH_STOP_NS (100 * NS_PER_MS)
#define CRASH_HOLD_NS (500 * NS_PER_MS)

/*
 * Returns true if capture has to detach before the thread gets this signal. All of this holds then:
 * - the signal is a crash signal, and not one of capture_ignore_crashes();
 * - the process has a handler for the signal;
 * - capture_options.crashed is not NULL.
 *
 * Opens a file of /proc for a crash signal only.
 */
bool crash_is_due(const struct thread *th, int signal);

/*
 * Begins the detaching: from here on stop_handle() holds the process's threads in their stops, the
 * crashed thread included. th is the crashed thread.
 */
void crash_begin(const struct thread *th, int signal);

/* Gives up the detaching: the held threads go on, and stay traced. Reports nothing. */
void crash_give_up(struct traced_process *t);

/*
 * Gives up the detaching because the crashed thread has died: the process was killed, or another
 * thread executes a program. All held threads die, too, so none is continued: the thread that
 * executes may have the number of one of them already.
 */
void crash_is_void(struct traced_process *t);

/* Calls capture_options.crashed, with left false, and crash_give_up(): the handler runs traced. */
void crash_runs_traced(struct traced_process *t);

/*
 * Interrupts the threads that are neither held nor interrupted. Returns true if all living threads
 * of the process are held.
 */
bool crash_interrupt(struct traced_process *t);

/*
 * Returns false if a limit is exceeded: the stops of the threads that are not held need not be
 * awaited longer. began_ns: when the wait of step 2 began; stopped_ns: the last stop, or when the
 * wait of step 2 or 3 began. Both are times of capture_options.now_ns.
 */
bool crash_may_wait(const struct traced_process *t, uint64_t began_ns, uint64_t stopped_ns);

/*
 * Delivers the signal to the crashed thread, which must be held, and interrupts the thread. So it
 * stops before the handler's first instruction. Does not wait for that stop.
 */
void crash_enter_handler(struct traced_process *t);

/*
 * Takes the stop after crash_enter_handler(), without waiting. Returns true if the crashed thread
 * is held in that stop, or was killed; false if it has not stopped yet. When the thread is held,
 * sets t->crash.now.blocks_signal.
 */
must_check bool crash_is_in_handler(struct traced_process *t);

/*
 * Detaches from all held threads, and from new threads, which the kernel attaches at their birth
 * and whose first stop was not handled yet. No thread of t is in the table afterwards. Writes
 * RECORD_TICK and RECORD_RESET, and sets TRACED_ENDED. If the process was killed, does neither: the
 * next tick finds that the process has ended.
 *
 * Detaches from the leader first, and from the crashed thread last. While the leader is traced, the
 * kernel queues even signals that the process ignores, and such a signal makes calls of other
 * threads fail with EINTR. If the leader is the crashed thread, this can happen for some
 * microseconds.
 */
void crash_detach(struct traced_process *t);

/*
 * Returns true if the tracing thread may end now because of a crash of t. That is so if
 * - t is the only target: the call does not count this end; or
 * - the calls have counted no end for t's user (capture_set_user) in the last second, and fewer
 *   than 10 in the last minute: the call counts this end for the user.
 */
must_check bool crash_may_end_tracer(struct traced_process *t);

/*
 * For a stop of thread tid of a traced child (capture_options.born) that is no target yet. status
 * and signal: of tracee_classify(). If the thread is about to run its handler of a crash signal,
 * detaches from this thread, notes the crash and returns true. Returns false at any other stop, or
 * if the detach fails. Other threads of the child stay traced; a child that was born a moment ago
 * rarely has any.
 */
must_check bool crash_leave_child(struct capture *c, uint32_t tid, enum tracee_status status,
				  int signal);

/*
 * crash_was_left() returns true if capture has detached from the process because of a crash in the
 * last 10 s. Then a child of the process may be the crash reporter, which must not become a target.
 * crash_is_target_again() forgets that crash. Call it when capture attaches to the process again.
 */
bool crash_was_left(struct capture *c, int32_t pid);
void crash_is_target_again(struct capture *c, int32_t pid);

/*
 * Call this before capture_add() for a child that capture_options.born has reported. Returns true
 * and sets *ret if crash_leave_child() has detached from the child in the last 10 s. Then the
 * child's crash handler runs, so the caller does not add the child now. Returns true once for each
 * crash.
 */
bool capture_child_has_crashed(struct capture *c, int32_t pid, struct capture_crash *ret);

/*
 * Called in the new tracing thread if the former one has ended because of a crash of t: no thread
 * is held any more. Writes the records that crash_detach() writes, and sets TRACED_ENDED.
 */
void crash_tracer_ended(struct traced_process *t);

#endif
