#include "daemon/broker/targets/owners.h"

#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/common/log.h"
#include "daemon/process/process.h"

/* Whoever has asked for the process may not profile it with its new rights. */
static void note_change(struct targets *ts, struct instance *i)
{
	log_debug("process %d has other rights now", i->pid);
	i->owner_changes++;
	i->owner_has_changed = true;
	if (instance_was_added(i) && instance_is_asked_by_user(i))
		instance_becomes(i, INSTANCE_REMOVED);
	if (ts->events.owner_changed != NULL)
		ts->events.owner_changed(ts->events.ctx, i);
}

void owners_end_run(struct targets *ts, struct target *t)
{
	if (t->owner_has_changed)
		return;
	t->owner_has_changed = true;
	note_change(ts, t->instance);
	target_stop(ts, t);
}

int owners_check(struct targets *ts, struct target *t)
{
	struct owner now;
	int r = owner_read_again(&t->owner, &now);

	/* The pid belongs to the process as long as its pidfd says that it lives. */
	if (r == 0 && !process_is_alive(t->pidfd))
		r = -ESRCH;
	if (r < 0)
		return r;
	if (t->owner_has_changed)
		return -EACCES;
	t->instance->owner = now;
	if (!owner_is_same(&t->owner, &now)) {
		owners_end_run(ts, t);
		return -EACCES;
	}
	t->owner = now;
	return 0;
}

int owners_look(struct targets *ts, struct instance *i)
{
	struct owner now;
	int r = owner_read_again(&i->owner, &now);
	const bool is_same = r == 0 && owner_is_same(&i->owner, &now);

	if (r == 0 && !process_is_alive(i->pidfd))
		r = -ESRCH;
	if (r < 0)
		return r;
	i->owner = now;
	if (!is_same)
		note_change(ts, i);
	return instance_is_gone(i) ? -EACCES : 0;
}

int owners_begin(struct targets *ts, struct instance *i)
{
	const uint64_t now_ns = ts->state->clocks.mono();
	int r;

	if (i->owner_has_changed && i->owner_run_ns != 0 && now_ns - i->owner_run_ns < OWNER_RUN_NS)
		return -EAGAIN;
	r = owners_look(ts, i);
	if (r < 0 || !i->owner_has_changed)
		return r;
	if (i->owner_run_ns != 0 && now_ns - i->owner_run_ns < OWNER_RUN_NS)
		return -EAGAIN;
	i->owner_run_ns = now_ns;
	i->owner_has_changed = false;
	return 0;
}

/*
 * Returns true if the process may have another key: a look that costs less than a reading. The
 * directory of a process belongs to its effective user, and the files in it do, or belong to root.
 */
static bool looks_different(const struct target *t)
{
	return t->owner.kind == OWNER_MIXED || process_user(t->pid) != t->owner.uid ||
	       process_owner(t->owner.tid) != t->owner.files_uid;
}

void owners_check_all(struct targets *ts)
{
	FOR_EACH_TARGET (t, ts)
		if (target_is_open(t) && looks_different(t))
			(void)!owners_check(ts, t);
}
