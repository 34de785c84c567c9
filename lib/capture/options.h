/*
 * What the user of capture.h, here called the caller, gives to a capture: its options (clocks and
 * callbacks), the rings that samples are written to, and the ticks.
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

/* The most threads of all targets together. Each needs two open descriptors (RLIMIT_NOFILE). */
#define CAPTURE_THREADS_MAX 100000

/* The most processes that are held at the stop of their exec at a time (held_exec.h). */
#define HELD_EXEC_MAX 256

/*
 * A ring that one or more targets write to. The caller owns the sink, initialises the ring and sets
 * all other members to 0 or false; it frees the sink after the capture. Capture only writes
 * records: the caller sends the ring's head to the reader, at moments that the caller chooses
 * (daemon/capture/readers.h).
 */
struct capture_sink {
	struct ring_writer ring;
	/* Ring bytes reserved for samples of interrupted threads. Written by capture. */
	size_t promised;
	/*
	 * The number of execs of the sink's targets so far, and of RECORD_WATCHEDs written so far.
	 * Counted up by capture. When one has changed, the caller can send the head of the ring
	 * sooner.
	 */
	uint64_t execs, watched;
	/*
	 * true: no process reads the ring, so capture takes no samples for it. Set by the caller,
	 * which sets false and calls capture_reset() when there is a new reader.
	 */
	bool reader_is_gone;
};

/*
 * Events of a target. After CAPTURE_EXEC and CAPTURE_OTHER_RIGHTS the process is still a target.
 * After any other event capture frees the target, and the caller may use the target's struct
 * capture_counters for another target.
 */
enum capture_event {
	/* The process has ended, or capture has stopped profiling it. RECORD_END is written. */
	CAPTURE_GONE,
	CAPTURE_EXEC, /* the process executes a new program */
	/*
	 * The process runs with other rights than its user's, such as a set-user-ID program: no
	 * samples are taken until an exec gives it the user's rights again (capture_set_user).
	 */
	CAPTURE_OTHER_RIGHTS,
	CAPTURE_FOREIGN,      /* the new program is a 32-bit one: capture has detached and written
				 RECORD_END */
	CAPTURE_OTHER_TRACER, /* another tracer attached while capture was detached: no RECORD_END
			       */
};

/* A thread that is about to run its handler of a crash signal, such as SIGSEGV (crash.h). */
struct capture_crash {
	uint32_t tid;
	int signal;
	/*
	 * true: capture has detached from the process, so that a crash reporter can trace it, and
	 * frees the target without a RECORD_END. false: the handler runs traced and the target
	 * stays, because a thread did not stop, and the limit of crash_may_end_tracer() is reached.
	 */
	bool left;
	bool blocks_signal; /* the handler runs with the signal blocked; false also if not known */
	bool awaits_exec;   /* the target had no samples (capture_await_exec, capture_set_user) */
};

struct capture_options {
	clock_fn now_ns;	     /* CLOCK_MONOTONIC; as clock_mono_ns() (lib/base/clock.h) */
	clock_process_fn process_ns; /* as clock_process_ns() */
	clock_switches_fn switches;  /* as clock_switches() */
	/*
	 * Open events of all processors (perf/perf.h), which stay the caller's. With them capture
	 * attaches to no process, and looks at threads for a tick when the tick's period has ended.
	 * NULL: capture attaches with ptrace.
	 */
	struct perf *perf;
	/*
	 * The heartbeat (counters.h), not NULL. Capture renews beat->time_ns while it attaches to
	 * many threads or looks at them; at all other times the caller does. Capture sets
	 * beat->touching before it accesses a target, since an access can hang.
	 */
	struct capture_beat *beat;
	/*
	 * Reports an event of a target, not NULL. This callback and those below are called in the
	 * middle of a function of capture, mostly capture_tick or capture_reap. A callback must not
	 * call functions of capture.
	 */
	void (*event)(void *ctx, uint32_t target, enum capture_event event);
	/*
	 * Reports that a thread of a target is about to run its handler of a crash signal. NULL:
	 * capture does not detach for crashes.
	 */
	void (*crashed)(void *ctx, uint32_t target, const struct capture_crash *crash);
	/*
	 * Reports that a target, or a child that `born` reports, has executed a program, at the
	 * stop before the program's first instruction. Returns true if capture is to hold the
	 * process there until capture_decide_exec() (held_exec.h). NULL: no process is held.
	 */
	bool (*executed)(void *ctx, int32_t pid);
	/*
	 * Reports a child that a target, or a child reported here, has forked. One child may be
	 * reported several times. pid may be the tid of a thread of the child. Without perf, the
	 * kernel attaches capture to each child at its birth. The child runs on at once, and is not
	 * a target until the caller calls capture_add. A child of fork(2) or vfork(2) is reported
	 * before its parent's end. NULL: capture does not attach to children.
	 *
	 * pid 0: capture may not know of some children, which the caller looks for. For a moment
	 * no target was traced (capture_attach_again), or records of perf were lost.
	 */
	void (*born)(void *ctx, int32_t pid);
	void *ctx; /* passed to each callback */
};

/*
 * A tick stands for one period of time. Capture looks at the threads once, at some moment of
 * the period. Samples carry the time at which the period began, so each sample stands for the
 * same length of time, whatever that moment was. Times are ns of CLOCK_MONOTONIC.
 */
struct tick {
	uint64_t number; /* counts up from call to call of capture_tick; numbers may be left out */
	uint64_t begin_ns, period_ns; /* begin and length of the period */
	uint64_t due_ns; /* the time for which the tick was scheduled, within the period */
};

#endif
