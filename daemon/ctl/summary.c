#include "daemon/ctl/summary.h"

#include <stdlib.h>

#include "lib/aggregate/functions.h"

/* Adds the times of the merge's stacks to the table. */
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

		times[i] = (struct stacks_time){
			.node = bar->node,
			.running_ns = bar->is_waiting ? 0 : bar->lasts_ns,
			.waiting_ns = bar->is_waiting ? bar->lasts_ns : 0,
		};
	}
	return functions_add(f, &stacks, frames);
}

int summary_write(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct profile_frame *frames = calloc(m->n_frames + 1, sizeof(*frames));
	struct stacks_time *times = calloc(m->n_bars + 1, sizeof(*times));
	struct functions f;
	int r = -ENOMEM;

	(void)o;
	functions_init(&f, m->options.hash_seed);
	for (size_t i = 0; i < m->n_frames && frames != NULL; i++) {
		frames[i].function = m->frames[i].function;
		frames[i].package = m->frames[i].package;
	}
	if (frames != NULL && times != NULL)
		r = add_times(m, frames, times, &f);
	if (r == 0)
		r = functions_write(&f, SUMMARY_ROWS, out);
	functions_fini(&f);
	free(frames);
	free(times);
	return r;
}
