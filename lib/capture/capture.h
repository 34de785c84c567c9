/*
 * The sampler. Attaches to processes with ptrace, looks at each of their threads at each tick, and
 * writes samples into rings (lib/capture/sample.h). Does not unwind. A tick is a numbered sampling
 * period (struct tick, options.h).
 *
 * Effects on a target: PTRACE_SEIZE stops no thread. At a tick, each running thread is interrupted,
 * and goes on as soon as its registers and stack are copied. Blocked threads are not stopped.
 * Nothing is allocated while a thread is stopped. With capture_options.perf the library attaches to
 * no process and stops no thread (observe.h).
 *
 * Order of use: capture_new; capture_add for each process to profile, which is a target from then
 * on; capture_tick at each tick; capture_reap when SIGCHLD arrives (reap.h). To detach from targets
 * (detach.h), the tracing thread ends: the kernel then detaches all tracees without a stop.
 *
 * Limits: the program that uses the library has at most one struct capture, because a capture takes
 * the wait statuses of any child. One thread, the tracing thread, makes all calls but capture_new.
 * After its end a new tracing thread makes them, first capture_attach_again (detach.h). Calls use
 * SIGALRM and ITIMER_REAL; they restore the handler and the mask, and leave the timer off. All
 * other threads must block SIGALRM.
 *
 * A target can end at any moment, so the functions that return nothing ignore the number of a
 * target that does not exist. Times are ns by capture_options.now_ns (CLOCK_MONOTONIC).
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
 *	static void on_event(void *ctx, uint32_t target, enum capture_event event)
 *	{
 *		(void)ctx;
 *		printf("target %u: event %d\n", target, event);
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

/*
 * Makes a capture without targets. Copies the options; what they point to must outlive the capture.
 * Returns 0 or -ENOMEM.
 */
must_check int capture_new(const struct capture_options *options, struct capture **ret);

/*
 * Frees the capture and its targets. Writes no record and detaches no tracee: the end of the
 * tracing thread detaches them. c may be NULL.
 */
void capture_free(struct capture *c);

/*
 * Attaches to process pid, which becomes a target. pidfd refers to the same process; the call uses
 * it only to check that, and does not close it. target is the number that the target's records
 * carry: not 0, and not that of another target. Do not add a process twice. Records go to *sink
 * (options.h). Capture adds to *counters (counters.h). Both must outlive the target. tick is the
 * number of the current tick; the first sample is taken at the next one.
 *
 * Returns 0 even if capture is not attached to all threads yet, because process pid is in the
 * middle of an exec or has very many threads: capture attaches to the others at later ticks.
 * Returns an error if the process has not become a target:
 * - -ESRCH: process pid has ended, or is about to;
 * - -EPERM: the kernel refuses the attach;
 * - -EACCES: the caller may not read the files of /proc/PID;
 * - -EBUSY: process pid has another tracer;
 * - -ECANCELED: capture has left the parent of process pid in a crash within the last 10 s, so
 *   process pid may be the parent's crash reporter (crash.h): try again later;
 * - -ENOEXEC: process pid runs a 32-bit program;
 * - -ENOMEM, -EMFILE, -ENFILE: lack of memory or descriptors, or CAPTURE_THREADS_MAX (-EMFILE).
 */
must_check int capture_add(struct capture *c, uint32_t target, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick);

/*
 * Requests the values of pthread_self(3): from here on the target's RECORD_THREADs have those that
 * capture can find. To find the value of a thread that is not stopped costs a few system calls.
 * Call it before the target's first tick.
 */
void capture_want_thread_pointers(struct capture *c, uint32_t target);

/*
 * For a target that is about to execute the program that is to be profiled: until the exec, capture
 * takes no samples of the target and counts none of its ticks. Call it before the target's first
 * tick, and after capture_set_user(), which could end the wait.
 */
void capture_await_exec(struct capture *c, uint32_t target);

/*
 * Keeps the stacks of a program with other rights than its user's (set-user-ID, set-group-ID, file
 * capabilities) from the user's unwind process. uid: the process's user, by whom crashes are
 * counted, too (crash_may_end_tracer). files_uid: the owner of the process's files in /proc, as the
 * caller knows it. The kernel makes root the owner while the program has other rights.
 *
 * Capture reads the owner now and after each exec. If the owner is not files_uid, capture reports
 * CAPTURE_OTHER_RIGHTS, and takes no samples until an exec after which the owner is files_uid. If
 * uid and files_uid differ (the process is not dumpable), the owner after an exec proves nothing,
 * so capture takes no samples after any exec. Without this call capture compares nothing. Call it
 * before the target's first tick.
 */
void capture_set_user(struct capture *c, uint32_t target, uint32_t uid, uint32_t files_uid);

/*
 * Until the target's next exec, a crash by one of these signals does not make capture detach from
 * the target, even if the target has a handler (capture_options.crashed). Bit n - 1 of signals
 * stands for signal n. Replaces the set of an earlier call.
 */
void capture_ignore_crashes(struct capture *c, uint32_t target, uint32_t signals);

/*
 * Looks at the threads of each target that is due at this tick: samples blocked threads, and
 * interrupts running ones. These stop soon after, and capture_reap takes their samples (reap.h).
 * Reports targets that have ended (capture_options.event), and frees them. Does nothing while
 * capture_must_detach_now() is true (detach.h).
 */
void capture_tick(struct capture *c, const struct tick *tick);

/*
 * Returns the number of the next tick at which capture has work; the caller may skip the ticks
 * before it. 0, or a number in the past, means the very next tick. Every other call can make the
 * number lower, so the caller asks again after each. Without targets the result is 0, but there is
 * no work: the caller may skip ticks until it adds a target.
 */
uint64_t capture_next_tick(const struct capture *c);

/*
 * Returns the time at which capture has to end a resumed system call because its timeout is over
 * (call_timeouts.h), or an earlier time; UINT64_MAX: there is no such call. The caller must call
 * capture_tick for the first tick after this time, even if capture_next_tick returns a later one.
 */
uint64_t capture_timeout_ns(const struct capture *c);

/*
 * Sets the target's rate, which is every tick at first. From here on `ticks` of every `of_ticks`
 * ticks are ticks of the target, on average, and capture samples it at these only. Example: 1 of 4.
 * Capture chooses them among the ticks of the target with the highest rate, so that capture wakes
 * at that rate only. 0 < ticks <= of_ticks.
 */
void capture_rate(struct capture *c, uint32_t target, uint32_t ticks, uint32_t of_ticks);

/*
 * While is_withheld is true, capture looks at no thread of the target and interrupts none, to save
 * CPU time. Capture stays attached, and counts the target's ticks as before. All samples, also
 * those under way, count as missed (MISSED_BUDGET). Records say that the state of the threads is
 * not known.
 */
void capture_withhold(struct capture *c, uint32_t target, bool is_withheld);

/* Returns the number of threads that were interrupted for a sample and have not stopped yet. */
size_t capture_pending(const struct capture *c);

/* Returns the number of threads of all targets. */
size_t capture_threads(const struct capture *c);

/*
 * Returns the highest SCHED_FIFO or SCHED_RR priority of all targets' threads; 0: no such thread.
 * The tracing thread must run above this priority. Otherwise a thread of this priority keeps the
 * tracing thread off the processors, possibly while a stopped thread waits for it. A priority is
 * read when the thread is new, after ticks that capture missed, and with its name. Threads of
 * SCHED_DEADLINE, which is above all priorities, are not counted.
 */
int capture_realtime_priority(const struct capture *c);

/*
 * Call this when the sink has a new reader. At its next tick each target of the sink gets a
 * RECORD_RESET, and all of its threads are announced and sampled anew. Samples under way count as
 * missed (MISSED_NO_READER). The targets have no watched parts until the new reader sends a list
 * (capture_watch).
 */
void capture_reset(struct capture *c, const struct capture_sink *sink);

/*
 * Takes a stack hint from the sink's reader: which bytes of a thread's stacks the unwinder needs,
 * [sp, top) of the stack on which the last sample was, and, if second is not 0, those from second
 * to the end of the thread's own stack. If the thread's last sample had less, the thread is
 * sampled again, even if it is blocked. A hint for a thread that does not belong to this target and
 * sink is ignored.
 */
void capture_hint(struct capture *c, const struct capture_sink *sink, uint32_t target, uint32_t tid,
		  uint64_t sp, uint64_t top, uint64_t second);

/*
 * Takes a request from the sink's reader: the sample of a thread that is blocked at this sp and pc
 * lacked registers that the unwinder needs. Capture stops the thread once to read them, within the
 * limits of waits.h. Ignored for a thread that does not belong to this target and sink.
 */
void capture_want_registers(struct capture *c, const struct capture_sink *sink, uint32_t target,
			    uint32_t tid, uint64_t sp, uint64_t pc);

/*
 * Takes the list of watched parts of a target from the sink's reader (lib/base/watch_part.h), and
 * copies the n parts. list is a number of the reader's choice, which RECORD_WATCHED repeats. The
 * caller has checked that n is at most WATCH_PARTS, and the size of each part 1 to WATCH_BYTES.
 * Ignored if the target has another sink.
 */
void capture_watch(struct capture *c, const struct capture_sink *sink, uint32_t target,
		   uint32_t list, const struct watch_part *parts, size_t n);

#endif
