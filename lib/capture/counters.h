/*
 * What capture counts for a target, and the heartbeat.
 *
 * Both lie in memory that capture writes and the broker reads (the heartbeat
 * page, daemon/msg/heartbeat.h), so that the figures outlive a capture process
 * that has to be killed. Nothing is ever read back from there.
 *
 * The sum that always holds, but for ticks under way:
 *   expected = captured + repeated + filled + sum of missed
 */
#ifndef LIB_CAPTURE_COUNTERS_H
#define LIB_CAPTURE_COUNTERS_H

#include <stdint.h>

enum missed_reason {
	MISSED_RING_FULL,    /* the reader was behind: the thread was left alone */
	MISSED_LATE,	     /* the sampler itself did not get to run at the tick */
	MISSED_EXITED,	     /* the thread died between interrupt and stop */
	MISSED_NOT_STOPPED,  /* neither stopped nor blocked for PENDING_MAX_NS */
	MISSED_NOT_ATTACHED, /* a thread that could not be seized, or not yet */
	MISSED_MEMORY_SLOW,  /* its memory made us wait, and is left alone */
	MISSED_NO_READER,    /* what was read or is to be told has no reader */
	MISSED_NO_RESOURCES, /* no descriptor or memory to read what it does */
	MISSED_N
};

/*
 * A histogram of durations: bucket i holds those up to
 * 2^(i / 8) * 256 ns, 8 buckets an octave, so a percentile is within 9 %.
 */
#define PAUSE_BUCKETS	 160
#define PAUSE_BASE_SHIFT 8 /* 256 ns */

struct capture_counters {
	uint64_t ticks; /* timer expirations since attached, overruns included */
	uint64_t expected;
	uint64_t captured;
	uint64_t repeated;
	uint64_t filled;
	uint64_t stack_bytes; /* in the samples captured, second ranges too */
	uint64_t missed[MISSED_N];
	uint64_t stops;		/* by our interrupts */
	uint64_t event_stops;	/* clone, exec, signals, group-stops */
	uint64_t rewritten;	/* results of interrupted calls set to restart */
	uint64_t continued;	/* calls cut short whose rest was run */
	uint64_t threads;	/* alive and known now */
	uint64_t refused;	/* there at the last scan, and could not be attached */
	uint64_t refused_error; /* the errno of the last of these */
	uint64_t cost_ns;	/* of our time, spent on this target */
	uint64_t pause_max_ns;
	uint64_t pauses[PAUSE_BUCKETS];
};

struct capture_beat {
	uint64_t time_ns; /* CLOCK_MONOTONIC, at least every tick */
	/* The target whose memory or files are about to be touched, or 0. */
	uint64_t touching;
};

/* Adds a pause to the histogram. */
void counters_pause(struct capture_counters *c, uint64_t ns);

/*
 * The pause in ns that a share of them (0.0 to 1.0) does not exceed: the upper
 * bound of its bucket; 0 if there are none.
 */
uint64_t counters_pause_percentile(const struct capture_counters *c, double share);

/* Adds every figure of more to sum (max for the max). */
void counters_add(struct capture_counters *sum, const struct capture_counters *more);

/* "ring_full" and so on, for stats. */
const char *missed_reason_name(enum missed_reason reason);

#endif
