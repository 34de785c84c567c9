/*
 * The formats that sentry-profctl writes from a merge (merge.h), each by one function in a file of
 * its own. The table of formats is daemon/ctl/convert/formats.c.
 *
 * Each function gets a finished merge. "Merge:" in its comment names the options with which the
 * merge has to be made (struct merge_options): by_function is set ("by function") or not ("by
 * address"), is_ordered is set ("ordered") or not, keep_extra is set if it is named. The function
 * writes the whole output to out and flushes out. It returns 0, -ENOMEM, or the negative errno of
 * writing (-EIO if errno is not set).
 */
#ifndef PROTO_EXPORT_EXPORT_H
#define PROTO_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "proto/export/merge.h"
#include "proto/json_out.h"

struct compare;

struct export_options {
	bool by_samples;     /* folded: count samples, not microseconds */
	bool with_threads;   /* folded: the thread is the root of each stack */
	bool is_pretty;	     /* json: each element of a list on its own line */
	bool full_names;     /* summary, svg: C++ and Rust names are not shortened */
	const char *thread;  /* export_self_profiling(): the thread to write; NULL: all */
	const char *version; /* of sentry-profd */
	/* html: the comparison to show; NULL: the page shows one profile. */
	const struct compare *comparison;
};

/*
 * Collapsed stacks, as flamegraph.pl and inferno read them: "root;...;leaf N",
 * one line for each stack; N is microseconds or, with by_samples, samples. Control characters and
 * ';' in names become '_'.
 * Source: Brendan Gregg's FlameGraph, stackcollapse-perf.pl.
 * Merge: by function, not ordered.
 */
must_check int export_folded(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * V2 payloads: one JSON object for each merge_process, with the samples of all its chunks, on one
 * line (with is_pretty: a line for each element of a list). chunk_id and other members are
 * those of the chunk that was added first. A payload of more than 66 s is written, too, although
 * the server rejects it.
 * Merge: by address, ordered, keep_extra.
 */
must_check int export_json(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * speedscope: one evented profile for each thread, in microseconds since the first sample.
 * Merge: by function, ordered.
 * Source: https://www.speedscope.app/file-format-schema.json.
 */
must_check int export_speedscope(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * The processed profile of the Firefox Profiler, version 70. Each bar is a sample, with its
 * duration in milliseconds as the weight. A sample without a stack, of weight 0, is at the end of a
 * bar if the next one does not start there. threadCPUDelta tells running from ready and waiting,
 * and the leaf of a ready stack has the category Ready.
 * Merge: by address, ordered.
 * Source: github.com/firefox-devtools/profiler, src/types/profile.ts and
 * docs-developer/CHANGELOG-formats.md.
 */
must_check int export_firefox(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * The profile of the JS Self-Profiling API: frames, resources, samples, and stacks with
 * parentId; times in milliseconds since the first sample. A sample lasts until the next one of its
 * thread. The format has no threads:
 * - If o->thread is NULL, the root frame of each stack names the thread. If a gap follows a bar of
 *   the thread, a further sample marks the end of the bar; its stack is this root frame alone.
 * - Otherwise the function writes only the first thread whose label, name or id is o->thread, and
 *   stacks have no root frame for it. If a gap follows a bar, a sample without a stack marks the
 *   end of the bar. export_has_thread() says whether there is one.
 * Merge: by function, ordered.
 * Source: W3C, JS Self-Profiling API, "The ProfilerTrace dictionary".
 */
must_check int export_self_profiling(const struct merge *m, const struct export_options *o,
				     FILE *out);

/* Returns true if a thread has this label, name or id. */
bool export_has_thread(const struct merge *m, const char *name);

/*
 * profile.proto of pprof, compressed by gzip. Values: samples, and wall, ready and running time
 * in nanoseconds. Labels: thread, tid, pid if it is known, profiler_id.
 * Merge: by address, not ordered.
 * Source: github.com/google/pprof, proto/profile.proto.
 */
must_check int export_pprof(const struct merge *m, const struct export_options *o, FILE *out);

/*
 * For files of proto/export/ only: writes a name as one part of a line of collapsed stacks.
 * Replaces ';', line breaks and other control characters by '_'.
 */
void export_folded_name(const char *s, FILE *out);

/* For files of proto/export/ only: writes a comma before each element but the first. */
static inline void export_comma(struct json_out *o, bool *is_first)
{
	json_out_raw(o, *is_first ? "" : ",");
	*is_first = false;
}

/*
 * Writes ns as a number of milliseconds. json_out_seconds() divides by a million, so it makes
 * seconds of microseconds, and milliseconds of nanoseconds.
 */
static inline void export_ms(struct json_out *o, uint64_t ns)
{
	json_out_seconds(o, ns);
}

/* Returns the time at which a bar ends, in ns as merge_bar.start_ns. */
static inline uint64_t export_end(const struct merge_bar *bar)
{
	return bar->start_ns + bar->duration_ns;
}

#endif
