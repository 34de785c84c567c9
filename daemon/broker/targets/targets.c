#include "daemon/broker/targets/targets.h"

#include <string.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/common/log.h"
#include "daemon/common/random.h"

/* A shorter sleep of the machine is not visible on the server's time line. */
#define SLEPT_NS NS_PER_SEC

/* More than a leap second. */
#define CLOCK_SET_US ((int64_t)(2 * NS_PER_SEC / NS_PER_US))
/* A clock that is set all the time ends a run at most once a minute. */
#define CLOCK_SET_AGE_NS (60 * NS_PER_SEC)

struct target *target_next(struct targets *ts, const struct target *t)
{
	size_t i = t == NULL ? 0 : (size_t)(t - ts->table) + 1;

	while (i < array_size(ts->table) && (ts->table[i].id == 0 || ts->table[i].is_retired))
		i++;
	return i < array_size(ts->table) ? &ts->table[i] : NULL;
}

struct target *target_of(struct targets *ts, uint32_t id)
{
	FOR_EACH_TARGET (t, ts)
		if (t->id == id)
			return t;
	return NULL;
}

size_t targets_count(struct targets *ts)
{
	size_t n = 0;

	FOR_EACH_TARGET (t, ts)
		n++;
	return n;
}

bool targets_all_closed(struct targets *ts)
{
	FOR_EACH_TARGET (t, ts)
		if (t->phase != TARGET_CLOSED)
			return false;
	return true;
}

bool target_is_open(const struct target *t)
{
	return t->phase == TARGET_WAITING || t->phase == TARGET_PROFILED;
}

/* An unwind process that was asked to open a session will answer. */
bool target_is_over(const struct target *t)
{
	return t->phase == TARGET_CLOSED && !t->in_capture && t->session != SESSION_ASKED;
}

/*
 * The time between the readings makes slept_ns at most longer, and in has_machine_slept() the value
 * that it is compared with at most shorter: the error never causes a restart.
 */
static void read_clocks(const struct targets *ts, struct target *t)
{
	const uint64_t mono_ns = ts->state->clocks.mono();

	t->opened_ns = mono_ns;
	t->wall_offset_us = (ts->state->clocks.wall() - mono_ns) / NS_PER_US;
	t->slept_ns = ts->state->clocks.boot() - mono_ns;
}

static bool has_machine_slept(const struct targets *ts, const struct target *t)
{
	const uint64_t boot_ns = ts->state->clocks.boot();

	return boot_ns > ts->state->clocks.mono() + t->slept_ns + SLEPT_NS;
}

/* The time between the readings makes both differences at most smaller. */
static bool was_clock_set(const struct targets *ts, const struct target *t)
{
	const uint64_t before_us = ts->state->clocks.mono() / NS_PER_US;
	const uint64_t wall_us = ts->state->clocks.wall() / NS_PER_US;
	const uint64_t after_ns = ts->state->clocks.mono();
	const int64_t forward_us = (int64_t)(wall_us - after_ns / NS_PER_US - t->wall_offset_us);
	const int64_t back_us = (int64_t)(t->wall_offset_us - (wall_us - before_us));

	return after_ns - t->opened_ns >= CLOCK_SET_AGE_NS &&
	       (forward_us > CLOCK_SET_US || back_us > CLOCK_SET_US);
}

bool target_clocks_agree(const struct targets *ts, const struct target *t)
{
	return !has_machine_slept(ts, t) && !was_clock_set(ts, t);
}

int target_open(struct targets *ts, struct instance *i, uint32_t rate_hz, bool is_for_recordings)
{
	size_t slot = 0;

	while (slot < array_size(ts->table) && ts->table[slot].id != 0)
		slot++;
	if (slot == array_size(ts->table))
		return -ENOSPC;
	i->target = &ts->table[slot];
	*i->target = (struct target){
		.id = ++ts->last_target,
		.slot = (uint32_t)slot,
		.is_for_recordings = is_for_recordings,
		.instance = i,
		.pid = i->pid,
		.pidfd = i->pidfd,
		.owner = i->owner,
		.statm_fd = -1,
		.full_hz = rate_hz,
		.rate_hz = rate_hz,
		.governed.lowest_hz = rate_hz,
	};
	if (i->target->is_for_recordings) {
		random_id(i->target->profiler_id);
	} else {
		memcpy(i->target->profiler_id, i->next_profiler_id, sizeof(i->target->profiler_id));
		random_id(i->next_profiler_id);
	}
	read_clocks(ts, i->target);
	return 0;
}

#define FILES_PAUSE_NS	   (60 * NS_PER_SEC)
#define FILES_PAUSE_MAX_NS (60 * FILES_PAUSE_NS)

uint64_t target_suspend_files(struct target *t, uint64_t now_ns)
{
	const uint64_t pause_ns =
		backoff_ns(++t->file_suspensions, FILES_PAUSE_NS, FILES_PAUSE_MAX_NS);

	t->files_suspended_until_ns = now_ns + pause_ns;
	return pause_ns;
}

void target_files_hang(struct target *t, uint64_t now_ns)
{
	const uint64_t ns = target_suspend_files(t, now_ns);

	log_error("opening a file of process %d hangs: its files are not opened for %u min; "
		  "functions of files that were not read before have no names",
		  t->pid, (unsigned int)(ns / NS_PER_SEC / 60));
}

bool target_files_suspended(const struct target *t, uint64_t now_ns)
{
	return now_ns < t->files_suspended_until_ns;
}

void target_closed(struct targets *ts, struct target *t)
{
	if (target_is_open(t) && t->in_capture)
		child_send_id(&ts->children->capture, MSG_TARGET_REMOVE, t->id);
	t->attach_due = false;
	t->phase = TARGET_CLOSED;
}

void target_begins_to_close(struct target *t, enum target_phase phase)
{
	t->phase = phase;
	if (t->closing_ns == 0)
		t->closing_ns = clock_mono_ns();
}

void target_close(struct target *t)
{
	if (t->phase == TARGET_CLOSED)
		return;
	/*
	 * An unwind process that is not ready has no records of the target, and may never
	 * answer.
	 */
	if (t->unwind == NULL || t->unwind->child.fd < 0 ||
	    t->unwind->child.state == CHILD_STARTS) {
		t->phase = TARGET_CLOSED;
		return;
	}
	target_begins_to_close(t, TARGET_CLOSING);
	t->overdue_checks = 0;
	child_send_id(&t->unwind->child, MSG_SESSION_CLOSE, t->id);
}

void targets_sweep(struct targets *ts)
{
	for (size_t k = 0; k < array_size(ts->table); k++)
		if (ts->table[k].is_retired)
			ts->table[k] = (struct target){0};
}
