#include "daemon/broker/targets/targets.h"

#include <errno.h>
#include <string.h>

#include "daemon/broker/targets/instance.h"
#include "daemon/common/random.h"
#include "daemon/process/process.h"

struct run *targets_next_run(struct targets *ts, const struct run *run)
{
	size_t i = run == NULL ? 0 : (size_t)(run - ts->table) + 1;

	while (i < array_size(ts->table) && (ts->table[i].id == 0 || ts->table[i].is_retired))
		i++;
	return i < array_size(ts->table) ? &ts->table[i] : NULL;
}

struct run *targets_run(struct targets *ts, uint32_t id)
{
	FOR_EACH_RUN (run, ts)
		if (run->id == id)
			return run;
	return NULL;
}

size_t targets_count_runs(struct targets *ts)
{
	size_t n = 0;

	FOR_EACH_RUN (run, ts)
		n++;
	return n;
}

bool targets_all_closed(struct targets *ts)
{
	FOR_EACH_RUN (run, ts)
		if (run->phase != RUN_CLOSED)
			return false;
	return true;
}

/* Sets run->profile: the run continues the profile of the run before, or a new profile begins. */
static void begin_profile(const struct state *state, struct instance *i)
{
	struct run *run = i->run;

	run->profile = i->broken_off;
	i->broken_off = (struct profile_start){0};
	if (run->profile.profiler_id[0] != '\0' &&
	    run->profile.is_for_recordings == run->is_for_recordings &&
	    run_clocks_agree(state, run))
		return;
	run->profile = (struct profile_start){.is_for_recordings = run->is_for_recordings};
	if (run->is_for_recordings) {
		random_id(run->profile.profiler_id);
	} else {
		memcpy(run->profile.profiler_id, i->next_profiler_id,
		       sizeof(run->profile.profiler_id));
		random_id(i->next_profiler_id);
	}
	run_set_times(state, run);
}

int targets_open_run(struct targets *ts, struct instance *i, uint32_t rate_hz,
		     bool is_for_recordings)
{
	struct process_identity now = {0};
	size_t slot = 0;

	while (slot < array_size(ts->table) && ts->table[slot].id != 0)
		slot++;
	if (slot == array_size(ts->table))
		return -ENOSPC;
	(void)process_identity(i->pid, &now);
	i->run = &ts->table[slot];
	*i->run = (struct run){
		.id = ++ts->last_run,
		.slot = (uint32_t)slot,
		.is_for_recordings = is_for_recordings,
		.instance = i,
		.pid = i->pid,
		.pidfd = i->pidfd,
		.owner = i->owner,
		.program_hash = now.program_hash,
		.statm_fd = -1,
		.full_hz = rate_hz,
		.rate_hz = rate_hz,
		.governed.lowest_hz = rate_hz,
	};
	begin_profile(ts->state, i);
	return 0;
}

void targets_sweep(struct targets *ts)
{
	for (size_t k = 0; k < array_size(ts->table); k++)
		if (ts->table[k].is_retired)
			ts->table[k] = (struct run){0};
}

bool targets_trace(const struct targets *ts)
{
	return ts->state->options.config.sampler == SAMPLER_PTRACE;
}
