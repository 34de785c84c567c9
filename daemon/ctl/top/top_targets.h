/*
 * The list of all targets of the daemon, for `sentry-profctl top` without a process: what
 * profiling costs each target. Rates are computed from two answers to PROTOCOL_STATUS
 * (daemon/broker/report/status.c).
 */
#ifndef DAEMON_CTL_TOP_TOP_TARGETS_H
#define DAEMON_CTL_TOP_TOP_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

#define TOP_TARGET_TEXT 64

struct top_target {
	int32_t pid;
	char name[TOP_TARGET_TEXT]; /* of the configuration section; truncated */
	char state[TOP_TARGET_TEXT];
	/* False if the user may not see the figures of this process: they are 0 then. */
	bool has_figures;
	uint32_t rate_hz, threads;
	uint64_t samples, missed, bytes; /* since the target was started */
	double pause_us;		 /* 99th percentile of the stops */
	/* Averages since the answer before; 0 after the first answer. */
	double samples_per_s, missed_per_s, bytes_per_s;
};

struct top_targets {
	struct top_target *v; /* sorted */
	size_t n;
	uint64_t at_ns; /* when the answer arrived */
};

enum top_target_order {
	TOP_BY_SAMPLES, /* per second */
	TOP_BY_PAUSE,
	TOP_BY_BYTES, /* per second */
	TOP_BY_NAME,
};

/*
 * Replaces the list by that of an answer in JSON, which arrived at now_ns, and sorts it. *t
 * is zeros before the first call. Returns 0, -EPROTO if json is not a status, or -ENOMEM;
 * after an error *t is unchanged.
 */
must_check int top_targets_take(struct top_targets *t, const char *json, size_t size,
				uint64_t now_ns, enum top_target_order order);

/* Sorts the list, largest value first; by name in ascending order. */
void top_targets_sort(struct top_targets *t, enum top_target_order order);

void top_targets_fini(struct top_targets *t);

#endif
