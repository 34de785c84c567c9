/*
 * The sampler. Attaches to processes with ptrace, looks at each of their threads at each tick, and
 * writes samples into rings (lib/capture/sample.h). Does not unwind.
 *
 * Effects on a target: PTRACE_SEIZE stops no thread. At a tick, each running thread is interrupted,
 * and goes on as soon as its registers and stack are copied. Blocked threads are not stopped.
 * Nothing is allocated while a thread is stopped.
 *
 * Order of use: capture_new; capture_add for each target; capture_tick at each tick; capture_reap
 * when SIGCHLD arrives (reap.h). detach.h has the functions that detach from targets. Capture does
 * not use PTRACE_DETACH, which needs a stop, except for a leader that is about to die. When the
 * calling thread ends, the kernel detaches all tracees without a stop.
 *
 * Limits: a process has at most one struct capture, because capture waits for any child.
 * The tracing thread makes all calls. After its end a new tracing thread takes its place, whose
 * first call is capture_attach_again (detach.h). SIGALRM and ITIMER_REAL are used within calls and
 * restored; all other threads of the process must block SIGALRM.
 *
 * A target can end at any moment, so the functions that return nothing ignore the number of a
 * target that does not exist.
 *
 * Example: samples the threads of a process for a second, and prints which of them had samples.
 *
 *	#include <stdio.h>
 *	#include <stdlib.h>
 *	#include <sys/syscall.h>
 *	#include "lib/capture/capture.h"
 *	#include "lib/capture/reap.h"
 *	#include "lib/capture/sample.h"
 *
 *	static void on_event(void *counters, uint32_t target, enum capture_event event)
 *	{
 *		printf("target %u: event %d, %p\n", target, event, counters);
 *	}
 *
 *	int main(int argc, char **argv)
 *	{
 *		const int32_t pid = argc == 2 ? atoi(argv[1]) : 0;
 *		const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
 *		const uint64_t start_ns = clock_mono_ns();
 *		struct capture_counters counters = {0};
 *		struct capture_beat beat = {0};
 *		struct capture_sink sink = {0};
 *		const struct capture_options options = {
 *			.now_ns = clock_mono_ns, .process_ns = clock_process_ns,
 *			.switches = clock_switches, .beat = &beat, .event = on_event};
 *		struct tick tick = {.period_ns = 10 * NS_PER_MS};
 *		const struct ring_record *record;
 *		struct ring_reader reader;
 *		struct capture *c;
 *		size_t size;
 *
 *		if (ring_writer_init(&sink.ring, 1 << 22) < 0 ||
 *		    ring_reader_init(&reader, sink.ring.fd) < 0 || capture_new(&options, &c) < 0 ||
 *		    capture_add(c, 1, pid, pidfd, &sink, &counters, 0) < 0)
 *			return EXIT_FAILURE;
 *		for (tick.number = 1; tick.number <= 100; tick.number++) {
 *			tick.begin_ns = tick.due_ns = start_ns + tick.number * tick.period_ns;
 *			while (clock_mono_ns() < tick.due_ns)
 *				(void)capture_reap(c);
 *			capture_tick(c, &tick);
 *			if (ring_advance(&reader, sink.ring.head) < 0)
 *				return EXIT_FAILURE;
 *			for (; ring_next(&reader, &record, &size) > 0; ring_release(&reader, size))
 *				if (record->type == RECORD_SAMPLE)
 *					printf("thread %u\n", ((const struct record *)record)->tid);
 *			if (ring_credit(&sink.ring, reader.tail) < 0)
 *				return EXIT_FAILURE;
 *		}
 *		return EXIT_SUCCESS;
 *	}
 */
#ifndef LIB_CAPTURE_CAPTURE_H
#define LIB_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/base/watch_part.h"
#include "lib/capture/counters.h"
#include "lib/capture/options.h"

struct capture;

/* Copies the options. Returns 0 or -ENOMEM. */
must_check int capture_new(const struct capture_options *options, struct capture **ret);

/* Frees everything. Writes no record and detaches no tracee. c may be NULL. */
void capture_free(struct capture *c);

/*
 * Attaches to process pid. pidfd refers to the same process and stays the caller's. target is the
 * number that the target's records carry; not 0. capture adds to *counters (counters.h), which must
 * outlive the target. tick is the current tick; the first sample is taken at the next one.
 *
 * If the process is in the middle of an exec, capture attaches to it, or to the rest of its
 * threads, at a later tick. Returns 0, -ESRCH (the process has ended), -EPERM, -EACCES (this
 * process may not read the target's files in /proc), -EBUSY (another tracer has it), -ECANCELED
 * (its parent runs its handler of a crash signal, crash.h: try again later), -ENOEXEC (a 32-bit
 * program), -ENOMEM or -EMFILE.
 */
must_check int capture_add(struct capture *c, uint32_t target, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick);

/*
 * Requests thread pointers: from here on the target's RECORD_THREADs have them where they are
 * known. The pointer of a thread that is not stopped is found by its list of robust locks, which
 * costs two system calls for each thread. Call it before the target's first tick.
 */
void capture_want_thread_pointers(struct capture *c, uint32_t target);

/*
 * Tells capture that the process is about to execute the program that is to be profiled. Until the
 * exec, capture takes no samples of the target and counts none of its ticks. Call it before the
 * target's first tick.
 */
void capture_await_exec(struct capture *c, uint32_t target);

/*
 * Sets whose the process is: its user, whose crashes are counted together, and the owner of its
 * files in /proc, which is root while the process has other rights than its user (set-user-ID,
 * set-group-ID, file capabilities). If that owner is another one now, or after an exec, the process
 * has other rights than its unwinder may see: capture reports CAPTURE_OTHER_RIGHTS, and takes no
 * samples until an exec after which the owner is the one set here. If uid and files_uid differ,
 * this holds after each exec, since the owner would be the same. Without this call nothing is
 * compared. Call it before the target's first tick.
 */
void capture_set_user(struct capture *c, uint32_t target, uint32_t uid, uint32_t files_uid);

/*
 * Handlers of these signals do not make capture detach from the target (capture_options.crashed),
 * until the process executes another program. Bit n - 1 stands for signal n.
 */
void capture_ignore_crashes(struct capture *c, uint32_t target, uint32_t signals);

/*
 * Looks at each thread of each target. Interrupted threads stop soon after, and capture_reap takes
 * their samples (reap.h).
 */
void capture_tick(struct capture *c, const struct tick *tick);

/*
 * Returns the number of the next tick at which capture has work; the caller may skip the ticks
 * before it. The number may be in the past, and every other call can make it lower. 0: the very
 * next tick, also if there are no targets.
 */
uint64_t capture_next_tick(const struct capture *c);

/*
 * Returns the time of the first timeout that capture watches, in ns; UINT64_MAX: none. The caller
 * must also call capture_tick for the first tick after this time, whatever capture_next_tick
 * returns.
 */
uint64_t capture_timeout_ns(const struct capture *c);

/*
 * Sets the target's rate, which is every tick at first: from here on the target is sampled at
 * `ticks` of every `of_ticks` ticks, evenly spread. Only these count as its ticks. They are a
 * subset of the ticks of the target with the highest rate, so that capture wakes at that rate only.
 * 0 < ticks <= of_ticks.
 */
void capture_rate(struct capture *c, uint32_t target, uint32_t ticks, uint32_t of_ticks);

/*
 * While this is set, no thread of the target is looked at or interrupted. The target stays attached
 * and keeps its ticks; their samples count as missed (MISSED_BUDGET), and the reader learns that
 * the state of the threads is not known. Samples under way are given up.
 */
void capture_withhold(struct capture *c, uint32_t target, bool is_withheld);

/* Returns the number of threads that were interrupted and have not stopped yet. */
size_t capture_pending(const struct capture *c);

/* Returns the number of threads of all targets. */
size_t capture_threads(const struct capture *c);

/*
 * Returns the highest SCHED_FIFO or SCHED_RR priority of all targets' threads; 0: no such thread.
 * The caller of capture_tick must run above this priority. Otherwise such threads keep the tracer
 * off the processors, possibly while one of their threads is stopped. A thread's priority is read
 * when the thread is new, after a late tick, and together with its name. SCHED_DEADLINE, which is
 * above all priorities, is not counted.
 */
int capture_realtime_priority(const struct capture *c);

/*
 * Called when the sink has a new reader. At its next tick each target of the sink gets a
 * RECORD_RESET, and all of its threads are announced and sampled anew. Samples under way are given
 * up.
 */
void capture_reset(struct capture *c, const struct capture_sink *sink);

/*
 * Takes a stack hint of the sink's reader: how much of a thread's stacks the unwinder needs
 * (stack_hints_take, msg_stack_hint). If the last sample of a blocked thread had less, the thread
 * is sampled again. A hint for a thread that writes to another sink is ignored.
 */
void capture_hint(struct capture *c, const struct capture_sink *sink, uint32_t target, uint32_t tid,
		  uint64_t sp, uint64_t top, uint64_t second);

/*
 * Takes a request of the sink's reader: the sample of a thread that is blocked at this sp and pc
 * lacked registers. The thread is stopped once, within the limits of waits.h. Ignored for a thread
 * that writes to another sink.
 */
void capture_want_registers(struct capture *c, const struct capture_sink *sink, uint32_t target,
			    uint32_t tid, uint64_t sp, uint64_t pc);

/*
 * Takes the list of watched parts of a target from the sink's reader (watch.h, msg_watch): n is at
 * most WATCH_PARTS. Ignored if the target writes to another sink.
 */
void capture_watch(struct capture *c, const struct capture_sink *sink, uint32_t target,
		   uint32_t list, const struct watch_part *parts, size_t n);

#endif
