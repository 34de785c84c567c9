#include "daemon/broker/targets/owners.h"

#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/common/log.h"
#include "daemon/process/process.h"

/*
 * Ends what a user who is no operator has asked for: this user may not profile a process with the
 * new rights. Recordings end by themselves (control/recordings.h).
 */
static void end_request(struct instance *i)
{
	i->asker = (struct instance_asker){0};
	if (i->wish == INSTANCE_WISH_ATTACHED) {
		i->wish = INSTANCE_WISH_NONE;
		i->is_started = false; /* until i has the values of its section again */
	}
	instance_becomes(i, INSTANCE_CHANGED);
}

/* Returns true if i exists only because a peer has attached or recorded the process. */
static bool exists_by_request(const struct instance *i)
{
	return i->origin == INSTANCE_ATTACHED || i->origin == INSTANCE_RECORDED;
}

/* Counts a change of the key of the instance i. */
static void note_change(struct targets *ts, struct instance *i)
{
	log_debug("process %d has other rights now", i->pid);
	i->owner_changes++;
	i->owner_has_changed = true;
	if (instance_is_asked_by_user(i) && exists_by_request(i))
		instance_becomes(i, INSTANCE_REMOVED);
	else if (instance_is_asked_by_user(i))
		end_request(i);
	if (ts->events.owner_changed != NULL)
		ts->events.owner_changed(ts->events.ctx, i);
}

static void end_run(struct targets *ts, struct run *run)
{
	if (run->owner_has_changed)
		return;
	run->owner_has_changed = true;
	run->instance->broken_off = run->profile;
	instance_unsampled_begins(run->instance);
	note_change(ts, run->instance);
	attach_stop(ts, run);
}

/*
 * Reads the owner of the process again. Returns -ESRCH if the process has ended, since another
 * process may have its pid.
 */
static int read_again(const struct owner *before, int pidfd, struct owner *ret)
{
	int r = owner_read_again(before, ret);

	return r == 0 && !process_is_alive(pidfd) ? -ESRCH : r;
}

void owners_end_run(struct targets *ts, struct run *run)
{
	struct owner now;

	/* owners_look() shall not take this change for another one. */
	if (!run->owner_has_changed && read_again(&run->owner, run->pidfd, &now) == 0)
		run->instance->owner = now;
	end_run(ts, run);
}

int owners_check(struct targets *ts, struct run *run)
{
	struct owner now;
	int r = read_again(&run->owner, run->pidfd, &now);

	if (r < 0)
		return r;
	if (run->owner_has_changed)
		return -EACCES;
	run->instance->owner = now;
	if (!owner_is_same(&run->owner, &now)) {
		end_run(ts, run);
		return -EACCES;
	}
	run->owner = now;
	return 0;
}

int owners_look(struct targets *ts, struct instance *i)
{
	const struct owner before = i->owner;
	struct owner now;
	int r = read_again(&before, i->pidfd, &now);

	if (r < 0)
		return r;
	i->owner = now;
	if (!owner_is_same(&before, &now))
		note_change(ts, i);
	return instance_is_gone(i) ? -EACCES : 0;
}

/* Returns true if the key has changed, and the last run that began after a change is too new. */
static bool must_wait(const struct instance *i, uint64_t now_ns)
{
	return i->owner_has_changed && i->owner_run_ns != 0 &&
	       now_ns - i->owner_run_ns < OWNER_RUN_NS;
}

/* Returns as owners_begin(). */
static int begin(struct targets *ts, struct instance *i, uint64_t now_ns)
{
	int r;

	if (must_wait(i, now_ns))
		return -EAGAIN;
	r = owners_look(ts, i);
	if (r == 0 && i->life != INSTANCE_LIVES)
		r = -EACCES;
	if (r < 0 || !i->owner_has_changed)
		return r;
	if (must_wait(i, now_ns))
		return -EAGAIN;
	i->owner_run_ns = now_ns;
	i->owner_has_changed = false;
	return 0;
}

int owners_begin(struct targets *ts, struct instance *i)
{
	int r = begin(ts, i, ts->state->clocks.mono());

	if (r == 0)
		instance_unsampled_ends(i);
	else if (r == -EAGAIN)
		instance_unsampled_begins(i);
	return r;
}

/*
 * Returns true if the process may have another key. This look costs less than owner_read(). The
 * directory /proc/PID belongs to the effective user of the process; the files in it belong to that
 * user or to root.
 */
static bool looks_different(const struct run *run)
{
	return run->owner.kind == OWNER_MIXED || process_user(run->pid) != run->owner.uid ||
	       process_owner(run->owner.tid) != run->owner.files_uid;
}

void owners_check_all(struct targets *ts)
{
	FOR_EACH_RUN (run, ts)
		if (run_is_open(run) && looks_different(run))
			(void)!owners_check(ts, run);
}
