/*
 * The sampler: attaches to processes with ptrace, looks at every thread at
 * every tick, writes what it saw into rings (lib/capture/sample.h).
 *
 * What it does to a target: PTRACE_SEIZE of its threads, which stops none; at
 * a tick, an interrupt of the threads that are running, each continued as soon
 * as its registers and stack are copied; nothing to those that are blocked.
 * It does not unwind, and while a thread is stopped it does not allocate.
 *
 * It never detaches by itself, since that takes a stop, but from a leader that
 * is about to die: when the thread that makes the calls ends, the kernel lets
 * go of all threads without stopping one (capture_finish first). To let go of
 * one target only, it lets go of all, and another thread attaches to the others
 * again (capture_remove).
 *
 * Only one struct capture per process: it reaps every child (waitpid -1), and
 * one thread has to make every call, up to capture_attach_again. SIGALRM and
 * ITIMER_REAL are in use, and given back, within a call; other threads have
 * to block that signal.
 */
#ifndef LIB_CAPTURE_CAPTURE_H
#define LIB_CAPTURE_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/ring.h"
#include "lib/base/util.h"
#include "lib/capture/counters.h"
#include "lib/capture/snapshot.h"

struct capture;

/*
 * A ring that targets write to; the caller owns it, frees it after the capture,
 * and after every call tells the reader the ring's new head.
 */
struct capture_sink {
	struct ring_writer ring;
	/* Of capture: ring bytes that samples under way will take. */
	size_t promised;
	/* By the caller: its reader has gone, and another may come. */
	bool is_left;
};

enum capture_event {
	CAPTURE_GONE, /* the process has ended; its RECORD_END is written */
	CAPTURE_EXEC, /* it runs a new program */
	/* That is a 32-bit one: it was let go, its RECORD_END is written. */
	CAPTURE_FOREIGN,
	/* Another tracer has it, since we let go: without RECORD_END. */
	CAPTURE_TAKEN,
};

struct capture_options {
	clock_fn now_ns;
	clock_process_fn process_ns;
	clock_switches_fn switches;
	/*
	 * Write-only. time_ns is renewed while many threads are attached or
	 * looked at, touching around what can hang; else it is the caller's.
	 */
	struct capture_beat *beat;
	/* Told in the middle of capture_tick or capture_reap: take a note. */
	void (*event)(void *ctx, uint32_t target, enum capture_event event);
	/*
	 * Children that a target forks are attached to as they are born, run on
	 * at once, and are no targets: of each of them this tells, once or
	 * more, as event does; pid may be a thread's. It tells of a child of
	 * fork(2) or vfork(2) before it tells of its parent's end. capture_add
	 * makes the child a target. NULL: children are left alone.
	 */
	void (*born)(void *ctx, int32_t pid);
	void *ctx;
};

must_check int capture_new(const struct capture_options *options, struct capture **ret);
void capture_free(struct capture *c);

/* Threads of all targets: two descriptors each, within RLIMIT_NOFILE. */
#define CAPTURE_THREADS_MAX 100000

/*
 * Attaches to process pid, which pidfd (the caller's) pins. target is the
 * number that its records carry; not 0. counters is write-only and outlives
 * the target. tick: the current one; the first sample is at the next.
 * If the process is in the middle of an exec, it, or the rest of its threads,
 * is attached at a tick to come. Returns 0, -ESRCH (gone), -EPERM, -EACCES
 * (this process may not read its files of /proc), -EBUSY (traced by another),
 * -ENOEXEC (a 32-bit program), -ENOMEM, -EMFILE.
 */
must_check int capture_add(struct capture *c, uint32_t target, int32_t pid, int pidfd,
			   struct capture_sink *sink, struct capture_counters *counters,
			   uint64_t tick);

/*
 * From here on its records of threads tell their pointers, where they are known
 * (struct record_thread): of those that are not stopped by what the kernel
 * knows of their locks, which costs two system calls a thread. Before its first
 * tick.
 */
void capture_want_pointers(struct capture *c, uint32_t target);

/*
 * From here on the target is not looked at, and nothing is expected of it,
 * until it executes a program: capture_add has attached to a process that is
 * about to do so. Before its first tick.
 */
void capture_await_exec(struct capture *c, uint32_t target);

/*
 * Each tick stands for one period of time, and is a look at some moment in it.
 * The samples say when the period began: so each of them stands for as much
 * time as any other, whenever the looks were. CLOCK_MONOTONIC.
 */
struct tick {
	uint64_t number;
	uint64_t begin_ns, period_ns;
	uint64_t due_ns; /* when the look was to be */
};

/*
 * Looks at every thread of every target. The stops that follow are announced by
 * SIGCHLD: call capture_reap then.
 */
void capture_tick(struct capture *c, const struct tick *tick);

/*
 * The next tick at which somebody is to be looked at, or something tried again:
 * none before it has to be given. It may have gone by, and the answer may be an
 * earlier one after every other call. 0: the next of all; or there is nobody.
 */
uint64_t capture_next_tick(const struct capture *c);

/*
 * And no later than at the first tick after this time, whoever is due at it;
 * UINT64_MAX: there is none such.
 */
uint64_t capture_waits_ns(const struct capture *c);

/*
 * From here on the target is looked at at ticks of every of_ticks only, spread
 * evenly among those of the target with the highest rate, so that capture wakes
 * at that rate; only those count as its ticks. 0 < ticks <= of_ticks.
 */
void capture_rate(struct capture *c, uint32_t target, uint32_t ticks, uint32_t of_ticks);

/*
 * Takes the wait statuses that are there, up to a number. Returns true if that
 * was reached: there may be more, which no SIGCHLD announces; call it again.
 */
bool capture_reap(struct capture *c);

/* The same of one, which the caller has got by waitpid(2). */
void capture_take(struct capture *c, uint32_t tid, int status);

/* Threads that were interrupted and have not stopped yet. */
size_t capture_pending(const struct capture *c);

/* All that are known. */
size_t capture_threads(const struct capture *c);

/*
 * The highest priority of a target's thread of SCHED_FIFO or SCHED_RR; 0: there
 * is none. Whoever calls capture_tick has to be above it: else such threads
 * keep it from the processors, and leave one that it has stopped where it is.
 * It is looked up as a thread comes, after a tick that was late, and along with
 * its name. SCHED_DEADLINE is above all, and left out.
 */
int capture_realtime_priority(const struct capture *c);

/* The sink has a new reader, which knows nothing: everything is told anew. */
void capture_reset(struct capture *c, const struct capture_sink *sink);

/*
 * How much of a thread's stacks is of use: stack_hints_take, and
 * msg_stack_hint. A blocked thread of whose stacks less was copied is sampled
 * anew. sink: whose reader says so; of targets that write to another one it
 * says nothing.
 */
void capture_hint(struct capture *c, const struct capture_sink *sink, uint32_t target, uint32_t tid,
		  uint64_t sp, uint64_t top, uint64_t second);

/*
 * Before we let go, after the last tick: true if no thread has a stop of ours
 * before it, and none is in a call that would fail, or come back with less, if
 * we left (lib/capture/restart/rest.h). Call it again after the next stops, and some
 * times a second; rests of calls that take long are cut off, so that the target
 * gets what is done. It is true in the end, whatever they do: after 20 s.
 */
must_check bool capture_settle(struct capture *c);

/*
 * Ends sampling: what is pending counts as missed, every target gets its
 * RECORD_END. False if a ring had no room: call again after a credit.
 */
must_check bool capture_finish(struct capture *c);

/*
 * The target is to be let go of: it is not looked at any more. The others are,
 * until capture_lets_go returns true. Then, without another tick,
 * capture_settle, until that does, or for as long as one cares to wait; the end
 * of the calling thread; and in another one, of the same process, at once,
 * capture_attach_again. Returns 0, or -ENOENT if there is no such target (any
 * more).
 */
must_check int capture_remove(struct capture *c, uint32_t target);

/* Somebody is to be let go of, and has not ended. */
bool capture_is_leaving(const struct capture *c);

/*
 * Between two ticks, some times a second as long as somebody is leaving: true
 * if nothing is under way in it that would be lost (capture_settle), nor a call
 * in one of the others, or that may end soon; at the latest after 10 s. Where
 * capture_settle is not true at once it may be false again: then there are
 * ticks again.
 */
must_check bool capture_lets_go(struct capture *c);

/*
 * Ends those that were removed, as if they had ended (CAPTURE_GONE), and
 * attaches to the others as they were: a thread takes some 5 us. What has
 * happened to them meanwhile, an end or an exec, is told as ever.
 */
void capture_attach_again(struct capture *c);

#endif
