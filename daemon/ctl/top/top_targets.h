/*
 * The list of all targets of the daemon, with what profiling costs each target, for `sentry-profctl
 * top` without an argument. The caller asks the daemon for its status again and again; rates are
 * computed from two answers.
 */
#ifndef DAEMON_CTL_TOP_TOP_TARGETS_H
#define DAEMON_CTL_TOP_TOP_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* The size of a text in bytes, with the NUL. */
#define TOP_TARGET_TEXT 64

struct top_target {
	int32_t pid;
	char name[TOP_TARGET_TEXT];  /* of the configuration section; truncated, with a NUL */
	char state[TOP_TARGET_TEXT]; /* as in the status, for example "profiling" */
	/* If false, the user may not see the figures: all members below but rate_hz are 0. */
	bool has_figures;
	uint32_t rate_hz, threads;
	/*
	 * Totals of all runs of the profiler on the process. missed counts the samples that could
	 * not be taken. bytes is the size of the chunks that were passed on to be sent or written.
	 */
	uint64_t samples, missed, bytes;
	double pause_us; /* 99th percentile of the times for which a sample stopped a thread */
	/*
	 * Averages between the previous answer and this one. 0 if the previous answer had no target
	 * with this pid, or if the total has become smaller.
	 */
	double samples_per_s, missed_per_s, bytes_per_s;
};

struct top_targets {
	struct top_target *v; /* sorted */
	size_t n;
	uint64_t at_ns; /* when the answer arrived (clock_mono_ns()); 0: no answer yet */
};

enum top_target_order {
	TOP_BY_SAMPLES, /* per second */
	TOP_BY_PAUSE,
	TOP_BY_BYTES, /* per second */
	TOP_BY_NAME,
};

/*
 * Replaces the list by the targets in json, an answer to PROTOCOL_STATUS (the daemon's status) of
 * size bytes that arrived at now_ns (clock_mono_ns()). Sorts the list. *t is zeros before the first
 * call. The function does not keep json. Returns 0, -EPROTO if json is not a status, or -ENOMEM;
 * after an error *t is unchanged.
 */
must_check int top_targets_take(struct top_targets *t, const char *json, size_t size,
				uint64_t now_ns, enum top_target_order order);

/*
 * Sorts the list in descending order; TOP_BY_NAME in ascending order. Equal values are sorted
 * by name, then by pid.
 */
void top_targets_sort(struct top_targets *t, enum top_target_order order);

/* Frees the list and zeroes *t. */
void top_targets_fini(struct top_targets *t);

#endif
