/*
 * The counters of a target, and the heartbeat of capture. Both are in memory that capture writes
 * and the broker reads (the heartbeat page, daemon/msg/msg_capture.h), so the counters outlive a
 * capture process that was killed. Capture changes the counters in place; nothing else that capture
 * does depends on their values.
 *
 * Samples are counted by ticks: each thread of the target counts once at each of the target's
 * ticks. If no sample of the target is under way (thread interrupted, not stopped yet):
 *     expected = captured + repeated + filled + sum of missed
 */
#ifndef LIB_CAPTURE_COUNTERS_H
#define LIB_CAPTURE_COUNTERS_H

#include <stdint.h>

/* Why it is not known what a thread did at a tick. */
enum missed_reason {
	MISSED_RING_FULL, /* the ring was full: the thread was not sampled */
	MISSED_LATE,	  /* capture was late for the tick */
	/* The thread has died or is dying, or an exec has ended its program. */
	MISSED_EXITED,
	/* The thread neither stopped nor blocked for 4 s, or capture detached before it stopped. */
	MISSED_NOT_STOPPED,
	MISSED_NOT_ATTACHED, /* the thread could not be seized, or not yet */
	MISSED_MEMORY_SLOW, /* the process's memory was slow to read, and is not read for a while */
	MISSED_NO_READER,   /* the ring has no reader */
	MISSED_NO_RESOURCES, /* lack of descriptors or memory */
	MISSED_CRASH,  /* after a detach for a crash (crash.h): only the broker counts these */
	MISSED_BUDGET, /* the target is withheld for the CPU budget (capture_withhold) */
	/* Without tracing only (capture_options.perf): */
	MISSED_NO_STACK,  /* the thread is runnable, and no sample shows its present stack */
	MISSED_TWICE,	  /* a dropped sample (OBSERVE_DROP, observe.h); counts as expected, too */
	MISSED_LOST,	  /* the ring of a processor was full */
	MISSED_THROTTLED, /* the kernel stopped the perf event of a processor for a while */
	MISSED_EXEC, /* perhaps an exec in this tick: the sample's program may have other rights */
	MISSED_N
};

/*
 * A histogram of durations. From 256 ns on each doubling has 8 equal buckets (256 to 288 ns and so
 * on), so a percentile is at most 12.5 % too high. The first bucket also counts shorter durations,
 * the last one longer ones.
 */
#define PAUSE_BUCKETS	 160
#define PAUSE_BASE_SHIFT 8 /* 256 ns */

struct capture_counters {
	uint64_t ticks;	   /* of the target since capture attached, late ones included */
	uint64_t expected; /* number of threads, summed over all ticks */
	uint64_t captured; /* a sample was written (RECORD_SAMPLE) */
	/*
	 * The thread has not run since its last sample, which is still valid; or a record without a
	 * sample says that the thread was running (RECORD_RUNNING) or ready (RECORD_READY).
	 */
	uint64_t repeated;
	/*
	 * Ticks between the interrupt of a thread and its stop, and ticks that were skipped while
	 * the process slept. The sample that follows stands for them.
	 */
	uint64_t filled;
	/* Bytes of stack in the captured samples, with their second ranges (lib/capture/sample.h).
	 */
	uint64_t stack_bytes;
	uint64_t missed[MISSED_N]; /* by reason: the state of the thread at the tick is not known */
	uint64_t stops;		   /* ptrace-stops by interrupts of capture */
	/* All other stops: for clone, exec, signals, group-stops, and of resumed calls. */
	uint64_t event_stops;
	uint64_t rewritten; /* interrupted calls that were made to restart */
	/* Interrupted calls that fail with EINTR because their first argument is lost (aarch64). */
	uint64_t unrepaired;
	uint64_t continued; /* partial transfers that were resumed (restart/resume.h) */
	uint64_t cost_ns;   /* time that capture spent on this target */
	/* How long samples say that threads were running, and ready; summed over the threads. */
	uint64_t running_ns, ready_ns;
	/*
	 * Over the seconds in which no sample is missing: the CPU time that the kernel counts for
	 * the process, and the growth of running_ns.
	 */
	uint64_t compared_cpu_ns, compared_running_ns;
	uint64_t without_schedstat; /* stops at which schedstat was empty, or not readable */
	/*
	 * The durations of the stops that `stops` counts, each from the moment at which capture
	 * begins to handle the stop to the continuation: the longest, and the histogram.
	 */
	uint64_t pause_max_ns;
	uint64_t pauses[PAUSE_BUCKETS];
	/* The present state of the target: capture replaces these values and adds nothing to them.
	 */
	uint64_t threads;	/* alive and known now */
	uint64_t refused;	/* threads at the last scan that could not be attached to */
	uint64_t refused_error; /* the positive errno of the last of these; 0: none */
};

struct capture_beat {
	uint64_t time_ns; /* CLOCK_MONOTONIC; renewed at each tick at least */
	/* The number of the target whose memory or files capture may be accessing now; 0: none. */
	uint64_t touching;
};

/* Adds the pause of one stop to the histogram and to pause_max_ns. */
void counters_pause(struct capture_counters *c, uint64_t ns);

/*
 * Returns the pause in ns that this share of pauses (0.0 to 1.0) does not exceed: the upper bound
 * of its bucket, or pause_max_ns if that is less. Returns 0 if there are no pauses.
 */
uint64_t counters_pause_percentile(const struct capture_counters *c, double share);

/*
 * Adds the counters of more to those of sum. pause_max_ns becomes the larger one. The present state
 * (threads, refused, refused_error) of sum stays as it is.
 */
void counters_add(struct capture_counters *sum, const struct capture_counters *more);

/* Returns the name of a reason in statistics, such as "ring_full"; "unknown" from MISSED_N on. */
const char *missed_reason_name(enum missed_reason reason);

#endif
