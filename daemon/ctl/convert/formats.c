#include "daemon/ctl/convert/formats.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/common/output_format.h"
#include "lib/aggregate/functions.h"
#include "proto/export/html/html.h"
#include "proto/export/html/svg.h"

/* Rows of the summary, as many as sentry-profd prints (daemon/broker/shutdown.c). */
#define SUMMARY_ROWS 20

/* Adds the times of all stacks of the merge to the table. */
static int add_times(const struct merge *m, const struct profile_frame *frames,
		     struct stacks_time *times, struct functions *f)
{
	struct stacks stacks = {
		.n_frames = m->n_frames,
		.nodes = m->nodes,
		.n_nodes = m->n_nodes,
		.times = times,
		.n_times = m->n_bars,
	};

	for (size_t i = 0; i < m->n_bars; i++) {
		const struct merge_bar *bar = &m->bars[i];

		times[i].node = bar->node;
		times[i].ns[bar->state] = bar->duration_ns;
	}
	return functions_add(f, &stacks, frames);
}

/* The name of the program, as the profiler made it a part of the release. */
static void program_name(const struct merge_process *process, char ret[NAME_MAX + 1])
{
	const char *release = process->release == NULL ? "unknown" : process->release;

	(void)snprintf(ret, NAME_MAX + 1, "%.*s", (int)strcspn(release, "@"), release);
}

/* Adds the processes of the merge and the times of their threads to the table of programs. */
static int add_processes(const struct merge *m, struct programs *programs)
{
	uint64_t(*ns)[PROFILE_STATES] = calloc(m->n_processes + 1, sizeof(*ns));
	int r = ns == NULL ? -ENOMEM : 0;

	for (size_t i = 0; i < m->n_bars && r == 0; i++) {
		const struct merge_bar *bar = &m->bars[i];

		ns[m->threads[bar->thread].process][bar->state] += bar->duration_ns;
	}
	for (size_t i = 0; i < m->n_processes && r == 0; i++) {
		char name[NAME_MAX + 1];
		bool is_counted = false;

		program_name(&m->processes[i], name);
		r = programs_add(programs, name, ns[i], &is_counted);
	}
	free(ns);
	return r;
}

/*
 * Writes the format "summary": the table of functions that sentry-profd prints after a run,
 * by the same code. The other formats are in proto/export/, which may not use lib/aggregate.
 */
static int write_summary(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct profile_frame *frames = calloc(m->n_frames + 1, sizeof(*frames));
	struct stacks_time *times = calloc(m->n_bars + 1, sizeof(*times));
	struct functions f;
	int r = -ENOMEM;

	functions_init(&f, m->options.hash_seed);
	f.hides_ready = m->hides_ready;
	for (size_t i = 0; i < m->n_frames && frames != NULL; i++) {
		frames[i].function = m->frames[i].function;
		frames[i].package = m->frames[i].package;
	}
	if (frames != NULL && times != NULL)
		r = add_times(m, frames, times, &f);
	if (r == 0)
		r = add_processes(m, &f.programs);
	if (r == 0)
		r = functions_write(&f, SUMMARY_ROWS, o->full_names, out);
	functions_fini(&f);
	free(frames);
	free(times);
	return r;
}

static const struct format formats[OUTPUT_FORMATS_N] = {
	[OUTPUT_FORMAT_FOLDED] = {true, false, false, export_folded},
	[OUTPUT_FORMAT_SPEEDSCOPE] = {true, true, false, export_speedscope},
	[OUTPUT_FORMAT_PPROF] = {false, false, false, export_pprof},
	[OUTPUT_FORMAT_FIREFOX] = {false, true, false, export_firefox},
	[OUTPUT_FORMAT_SELF_PROFILING] = {true, true, false, export_self_profiling},
	[OUTPUT_FORMAT_JSON] = {false, true, true, export_json},
	[OUTPUT_FORMAT_SUMMARY] = {true, false, false, write_summary},
	[OUTPUT_FORMAT_HTML] = {false, true, true, export_html},
	[OUTPUT_FORMAT_SVG] = {true, false, false, export_svg},
};

const struct format *format_by_name(const char *name)
{
	for (size_t i = 0; i < array_size(formats); i++)
		if (strcmp(output_formats[i].name, name) == 0)
			return &formats[i];
	return NULL;
}

const struct format *format_by_suffix(const char *path)
{
	const struct output_format *found = output_format_of_path(path);

	return found == NULL ? NULL : &formats[found - output_formats];
}
