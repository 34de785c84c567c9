#include "daemon/broker/targets/targets.h"

#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/socket.h"
#include "daemon/common/random.h"
#include "lib/base/clock.h"

/* Less than a person would see on a server's time line. */
#define OVERSLEPT_NS NS_PER_SEC

/* A leap second is no reason for another run. */
#define CLOCK_SET_US ((int64_t)(2 * NS_PER_SEC / NS_PER_US))
/* A clock that is set all the time ends a run each minute, and no more. */
#define SET_PAUSE_NS (60 * NS_PER_SEC)

struct target *target_next(struct broker *b, const struct target *t)
{
	size_t i = t == NULL ? 0 : (size_t)(t - b->targets) + 1;

	while (i < array_size(b->targets) && (b->targets[i].id == 0 || b->targets[i].is_retired))
		i++;
	return i < array_size(b->targets) ? &b->targets[i] : NULL;
}

struct target *target_of(struct broker *b, uint32_t id)
{
	FOR_EACH_TARGET (t, b)
		if (t->id == id)
			return t;
	return NULL;
}

size_t targets_count(struct broker *b)
{
	size_t n = 0;

	FOR_EACH_TARGET (t, b)
		n++;
	return n;
}

bool targets_all_closed(struct broker *b)
{
	FOR_EACH_TARGET (t, b)
		if (t->phase != TARGET_CLOSED)
			return false;
	return true;
}

bool target_is_open(const struct target *t)
{
	return t->phase == TARGET_WAITING || t->phase == TARGET_PROFILED;
}

/* An unwind that was asked for a session will answer. */
bool target_is_over(const struct target *t)
{
	return t->phase == TARGET_CLOSED && !t->in_capture && t->session != SESSION_ASKED;
}

/*
 * What passes between two readings only ever makes the sleep at the start
 * longer, and the one that it is compared with shorter.
 */
static void read_clocks(const struct broker *b, struct target *t)
{
	const uint64_t mono_ns = b->clocks.mono();

	t->opened_ns = mono_ns;
	t->wall_offset_us = (b->clocks.wall() - mono_ns) / NS_PER_US;
	t->slept_ns = b->clocks.boot() - mono_ns;
}

static bool overslept(const struct broker *b, const struct target *t)
{
	const uint64_t boot_ns = b->clocks.boot();

	return boot_ns > b->clocks.mono() + t->slept_ns + OVERSLEPT_NS;
}

/* What passes between two readings only ever makes the difference smaller. */
static bool clock_was_set(const struct broker *b, const struct target *t)
{
	const uint64_t before_us = b->clocks.mono() / NS_PER_US;
	const uint64_t wall_us = b->clocks.wall() / NS_PER_US;
	const uint64_t after_ns = b->clocks.mono();
	const int64_t forward_us = (int64_t)(wall_us - after_ns / NS_PER_US - t->wall_offset_us);
	const int64_t back_us = (int64_t)(t->wall_offset_us - (wall_us - before_us));

	return after_ns - t->opened_ns >= SET_PAUSE_NS &&
	       (forward_us > CLOCK_SET_US || back_us > CLOCK_SET_US);
}

bool target_clocks_hold(const struct broker *b, const struct target *t)
{
	return !overslept(b, t) && !clock_was_set(b, t);
}

int target_open(struct broker *b, struct instance *i)
{
	const uint32_t rate_hz = instance_rate_hz(i);
	size_t slot = 0;

	while (slot < array_size(b->targets) && b->targets[slot].id != 0)
		slot++;
	if (slot == array_size(b->targets))
		return -ENOSPC;
	i->target = &b->targets[slot];
	*i->target = (struct target){
		.id = ++b->last_target,
		.slot = (uint32_t)slot,
		.is_for_records = !instance_is_wanted(i),
		.instance = i,
		.pid = i->pid,
		.pidfd = i->pidfd,
		.uid = i->uid,
		.statm_fd = -1,
		.full_hz = rate_hz,
		.rate_hz = rate_hz,
		.governed.lowest_hz = rate_hz,
	};
	if (i->target->is_for_records) {
		random_id(i->target->profiler_id);
	} else {
		memcpy(i->target->profiler_id, i->next_profiler_id, sizeof(i->target->profiler_id));
		random_id(i->next_profiler_id);
	}
	read_clocks(b, i->target);
	return 0;
}

#define FILES_PAUSE_NS	   (60 * NS_PER_SEC)
#define FILES_PAUSE_MAX_NS (60 * FILES_PAUSE_NS)

uint64_t target_files_hang(struct target *t, uint64_t now_ns)
{
	const uint64_t pause_ns = backoff_ns(++t->file_hangs, FILES_PAUSE_NS, FILES_PAUSE_MAX_NS);

	t->files_until_ns = now_ns + pause_ns;
	return pause_ns;
}

bool target_files_rest(const struct target *t, uint64_t now_ns)
{
	return now_ns < t->files_until_ns;
}

/* No fault if it has none of it any more. */
static void remove_from_capture(struct broker *b, const struct target *t)
{
	child_tell(&b->capture, MSG_TARGET_REMOVE, t->id);
}

void target_stop(struct broker *b, struct target *t)
{
	if (!target_is_open(t))
		return;
	target_count_absence(b, t, clock_mono_ns());
	t->attach_due = false;
	if (!t->in_capture) {
		target_close(t);
		return;
	}
	t->phase = TARGET_STOPPING;
	remove_from_capture(b, t);
}

void target_closed(struct broker *b, struct target *t)
{
	if (target_is_open(t) && t->in_capture)
		remove_from_capture(b, t);
	t->attach_due = false;
	t->phase = TARGET_CLOSED;
}

void target_close(struct target *t)
{
	if (t->phase == TARGET_CLOSED)
		return;
	/* One that is not ready has nothing of it, and may never answer. */
	if (t->unwind == NULL || t->unwind->child.fd < 0 ||
	    t->unwind->child.state == CHILD_STARTS) {
		t->phase = TARGET_CLOSED;
		return;
	}
	t->phase = TARGET_CLOSING;
	t->owed_looks = 0;
	child_tell(&t->unwind->child, MSG_SESSION_CLOSE, t->id);
}

void targets_close(struct broker *b)
{
	uint64_t now = clock_mono_ns();

	FOR_EACH_TARGET (t, b) {
		target_count_absence(b, t, now);
		target_close(t);
	}
}

void target_retire(struct target *t)
{
	struct instance *i = t->instance;
	struct broker *b = i->broker;
	struct instance_figures figures;

	if (t->unwind != NULL && t->session == SESSION_OPEN)
		child_tell(&t->unwind->child, MSG_SESSION_FORGET, t->id);
	figures_of_target(b, t, &figures);
	figures_add(&i->past, &figures);
	if (i->target == t)
		i->target = NULL;
	if (i->kept == t)
		i->kept = NULL;
	close_fd(&t->statm_fd);
	t->is_retired = true;
}

void targets_sweep(struct broker *b)
{
	for (size_t k = 0; k < array_size(b->targets); k++)
		if (b->targets[k].is_retired)
			b->targets[k] = (struct target){0};
}
