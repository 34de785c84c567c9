/*
 * What the caller gives to a capture: its options (clocks and callbacks), the rings that
 * samples are written to, and the ticks.
 */
#ifndef LIB_CAPTURE_OPTIONS_H
#define LIB_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/ring.h"
#include "lib/capture/counters.h"

struct perf;

/* The most threads of all targets together. Each takes two descriptors of RLIMIT_NOFILE. */
#define CAPTURE_THREADS_MAX 100000

/* The most processes that are held at the stop of their exec at a time (held_exec.h). */
#define HELD_EXEC_MAX 256

/*
 * A ring that one or more targets write to. The caller owns the sink and frees it after the
 * capture. Capture only writes records: the caller sends the ring's head to the reader, at moments
 * that it chooses (daemon/capture/readers.h).
 */
struct capture_sink {
	struct ring_writer ring;
	/* Ring bytes reserved for samples under way. Written by capture. */
	size_t promised;
	/* RECORD_EXEC and RECORD_WATCHED of all targets so far. Written by capture */
	uint64_t execs, watched;
	/*
	 * No process reads the ring, so capture takes no samples for it. Set by the caller, which
	 * calls capture_reset() when there is a new reader.
	 */
	bool reader_is_gone;
};

/*
 * Events of a target. After each event but CAPTURE_EXEC and CAPTURE_OTHER_RIGHTS the target is
 * freed, and its counters are free for another one.
 */
enum capture_event {
	CAPTURE_GONE,	      /* the process has ended; its RECORD_END is written */
	CAPTURE_EXEC,	      /* the process executes a new program */
	CAPTURE_OTHER_RIGHTS, /* no samples are taken until the next exec (capture_set_user) */
	CAPTURE_FOREIGN,      /* the new program is a 32-bit one: capture has detached and written
				 RECORD_END */
	CAPTURE_OTHER_TRACER, /* another tracer attached while capture was detached: no RECORD_END
			       */
};

/* A thread is about to run its handler of a crash signal (lib/capture/crash.h). */
struct capture_crash {
	uint32_t tid;
	int signal;
	/*
	 * Capture has detached from the process, so that a crash reporter can trace it. The target
	 * is freed as after CAPTURE_OTHER_TRACER, without a RECORD_END. false: the handler runs
	 * traced, because a thread did not stop, and crashes of the same user's processes have
	 * ended the tracing thread too often.
	 */
	bool left;
	/* The thread blocks the signal while the handler runs. false: it does not, or is not known.
	 */
	bool blocks_signal;
	bool awaits_exec; /* no samples were taken, as after capture_await_exec() */
};

struct capture_options {
	clock_fn now_ns;
	clock_process_fn process_ns;
	clock_switches_fn switches;
	/*
	 * Events of all processors (perf/perf.h), which stay the caller's. With them capture
	 * attaches to no process, and ticks are looked at when their period has ended. NULL:
	 * capture attaches with ptrace.
	 */
	struct perf *perf;
	/*
	 * The heartbeat; capture only writes it. Capture renews beat->time_ns while it attaches to
	 * many threads or looks at them; at all other times the caller does. Capture sets
	 * touching before any access to a target that can hang.
	 */
	struct capture_beat *beat;
	/*
	 * Reports an event of a target. Called in the middle of capture_tick or capture_reap:
	 * the callback must not call capture.
	 */
	void (*event)(void *ctx, uint32_t target, enum capture_event event);
	/*
	 * Reports that a thread of a target is about to run its handler of a crash signal. The
	 * callback must not call capture. NULL: capture does not detach for crashes.
	 */
	void (*crashed)(void *ctx, uint32_t target, const struct capture_crash *crash);
	/*
	 * Reports that a target, or a child that capture follows, has executed a program, at the
	 * stop before the program's first instruction. Returns true if the process is to be held
	 * there until capture_decide_exec() (held_exec.h). The callback must not call capture.
	 * NULL: no process is held.
	 */
	bool (*executed)(void *ctx, int32_t pid);
	/*
	 * Reports a child that a target has forked, once or several times for each child. pid may
	 * be the number of a thread of the child. The callback must not call capture. The kernel
	 * attaches capture to each child at its birth. The child runs on at once, and is not a
	 * target until the caller calls capture_add. A child of fork(2) or vfork(2) is reported
	 * before its parent's end. NULL: capture does not attach to children.
	 */
	void (*born)(void *ctx, int32_t pid);
	void *ctx;
};

/*
 * A tick stands for one period of time. Capture looks at the threads once, at some moment of
 * the period. Samples carry the time at which the period began, so each sample stands for the
 * same length of time, whenever the look was. Times are ns of CLOCK_MONOTONIC.
 */
struct tick {
	uint64_t number;
	uint64_t begin_ns, period_ns;
	uint64_t due_ns; /* the time for which the tick was scheduled, within the period */
};

#endif
