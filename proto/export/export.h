/*
 * The formats that sentry-profctl convert writes from a merge, and what all of
 * them share. A format is a function in a file of its own; the table of formats
 * is daemon/ctl/formats.c.
 *
 * Each function gets a finished merge, made with the options that the table
 * names for the format, writes the whole output to out and flushes it. It
 * returns 0, -ENOMEM, or the error of the stream (-EIO if that gives none).
 */
#ifndef PROTO_EXPORT_EXPORT_H
#define PROTO_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "proto/export/merge.h"
#include "proto/json_out.h"

struct compare;

struct export_options {
	bool by_samples;     /* folded: values are samples, not microseconds */
	bool with_threads;   /* folded: the thread is the root */
	bool is_pretty;	     /* json: an element a line */
	const char *thread;  /* self-profiling: this one alone; NULL: all */
	const char *version; /* of sentry-profd */
	/* html: what the page compares; NULL: it shows one profile. */
	const struct compare *comparison;
};

/*
 * Collapsed stacks, as flamegraph.pl and inferno read them: "root;...;leaf N",
 * one line for each stack. Control characters and ';' in names become '_'.
 * Source: Brendan Gregg's FlameGraph, stackcollapse-perf.pl.
 * The merge is by function and not ordered.
 */
must_check int export_folded(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * V2 payloads: one JSON object for each process, with the samples of all its
 * chunks; a line each, or with is_pretty a line for each element of a list. The
 * merge is ordered, by address, and keeps the rest: chunk_id and other members
 * are those of the first chunk. More than 66 s are no chunk that the server
 * takes.
 */
must_check int export_json(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * speedscope: one evented profile for each thread, in microseconds since the
 * first sample of all. The merge is by function and ordered.
 * Source: https://www.speedscope.app/file-format-schema.json.
 */
must_check int export_speedscope(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * Firefox Profiler's processed profile, version 70: a sample for each bar, with
 * its length as the weight in milliseconds. Running and waiting are in
 * threadCPUDelta. The merge is by address and ordered.
 * Source: github.com/firefox-devtools/profiler, src/types/profile.ts and
 * docs-developer/CHANGELOG-formats.md.
 */
must_check int export_firefox(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * The profile of the JS Self-Profiling API: frames, resources, samples, stacks
 * with parentId. Milliseconds since the first sample of all. The format knows
 * no threads: the thread is the root frame, or o->thread (a label, a name or an
 * id) names the only one. A sample lasts until the next one of its thread; one
 * with the thread's frame alone, or without a stack where there is one thread,
 * ends it. The merge is by function and ordered. -ENOENT: no such thread.
 * Source: W3C, JS Self-Profiling API, "The ProfilerTrace dictionary".
 */
must_check int export_self_profiling(const struct merge *m, const struct export_options *o,
				     FILE *out);

/*
 * pprof's profile.proto, compressed by gzip. Values: samples, wall and running
 * nanoseconds. Labels: thread, tid, pid where it is known, profiler_id. The
 * merge is by address and not ordered.
 * Source: github.com/google/pprof, proto/profile.proto.
 */
must_check int export_pprof(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * Inside proto/export/: writes a name as one part of a line of collapsed
 * stacks. Separators of parts and lines, and control characters, become '_'.
 */
void export_folded_name(const char *s, FILE *out);

/* Inside proto/export/: a comma before each element but the first. */
static inline void export_comma(struct json_out *o, bool *is_first)
{
	json_out_raw(o, *is_first ? "" : ",");
	*is_first = false;
}

/* Milliseconds: json_out's decimals are of millionths, whatever their unit. */
static inline void export_ms(struct json_out *o, uint64_t ns)
{
	json_out_seconds(o, ns);
}

/* Where a bar ends. */
static inline uint64_t export_end(const struct merge_bar *bar)
{
	return bar->start_ns + bar->lasts_ns;
}

#endif
