/*
 * What sentry-profctl top shows of all targets of the daemon: what each of
 * them costs, from two answers to PROTOCOL_STATUS (daemon/broker/report/status.c).
 */
#ifndef DAEMON_CTL_TOP_TARGETS_H
#define DAEMON_CTL_TOP_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

#define TOP_TARGET_TEXT 64

struct top_target {
	int32_t pid;
	char name[TOP_TARGET_TEXT]; /* of the section, cut */
	char state[TOP_TARGET_TEXT];
	/* The caller may not see the figures of others' processes. */
	bool has_figures;
	uint32_t rate_hz, threads;
	uint64_t samples, missed, bytes; /* since the start of the target */
	double pause_us;		 /* the 99th percentile */
	/* Each second since the answer before; 0 in the first. */
	double samples_per_s, missed_per_s, bytes_per_s;
};

struct top_targets {
	struct top_target *v; /* in the order that was asked for */
	size_t n;
	uint64_t at_ns; /* the time of the answer */
};

enum top_target_order {
	TOP_BY_SAMPLES, /* each second */
	TOP_BY_PAUSE,
	TOP_BY_BYTES, /* each second */
	TOP_BY_NAME,
};

/*
 * Takes the JSON of an answer at now_ns in place of the one before. t is zeros
 * at first. Returns 0, -EPROTO if it is no such JSON, or -ENOMEM: t is
 * unchanged then.
 */
must_check int top_targets_take(struct top_targets *t, const char *json, size_t size,
				uint64_t now_ns, enum top_target_order order);

void top_targets_sort(struct top_targets *t, enum top_target_order order);

void top_targets_fini(struct top_targets *t);

#endif
