#include "daemon/broker/targets/instance.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/broker/targets/lifecycle.h"
#include "daemon/common/log.h"
#include "daemon/process/process.h"
#include "lib/base/clock.h"

struct instance *instance_of_pid(struct targets *ts, int32_t pid)
{
	for (size_t k = 0; k < ts->n_instances; k++) {
		struct instance *i = ts->instances[k];

		if (i->pid == pid && !instance_is_gone(i))
			return i;
	}
	return NULL;
}

bool instance_trusts_environ(const struct instance *i)
{
	if (!instance_has_section(i) || i->config.trust_environment)
		return true;
	return process_is_of(i->pid, i->config.uid != CONFIG_UID_ANY ? i->config.uid : geteuid());
}

void instance_becomes(struct instance *i, enum instance_life life)
{
	if (life > i->life)
		i->life = life;
}

void instance_release(struct instance *i, uint64_t length_ns)
{
	i->released_until_ns =
		max_u64(i->released_until_ns, i->targets->state->clocks.mono() + length_ns);
}

/* Returns the time by state_now_ns(), until sampling has ended. */
static uint64_t sampling_ns(const struct instance *i)
{
	const struct state *s = i->targets->state;

	return s->ended_ns != 0 ? s->ended_ns : s->clocks.mono() - s->suspended_ns;
}

void instance_unsampled_begins(struct instance *i)
{
	if (i->unsampled_since_ns == 0)
		i->unsampled_since_ns = sampling_ns(i);
}

void instance_unsampled_ends(struct instance *i)
{
	i->unsampled_ns = instance_unsampled_ns(i);
	i->unsampled_since_ns = 0;
}

uint64_t instance_unsampled_ns(const struct instance *i)
{
	const uint64_t since_ns = i->unsampled_since_ns;

	return i->unsampled_ns + (since_ns == 0 ? 0 : sampling_ns(i) - since_ns);
}

bool instance_is_seen_by(const struct instance *i, const struct peer *peer)
{
	return peer->sees_all || owner_is_user(&i->owner, peer->uid);
}

const char *instance_obstacle_text(const struct instance *i)
{
	switch (i->obstacle) {
	case INSTANCE_NO_OBSTACLE:
		break;
	case INSTANCE_LIMIT_REACHED:
		return "waits until a profiled process ends: max_instances, or the limit of "
		       "sentry-profd, is reached";
	case INSTANCE_OVER_BUDGET:
		return "not attached yet: its user's part of the CPU budget is used up";
	case INSTANCE_RIGHTS_CHANGE:
		return "its rights change: it is profiled again after 10 s";
	case INSTANCE_LEFT_OUT:
		return i->last_error;
	}
	return "";
}

void instance_forget_error(struct instance *i)
{
	if (i->obstacle == INSTANCE_LEFT_OUT)
		i->obstacle = INSTANCE_NO_OBSTACLE;
	i->has_leak_check = false;
	i->last_error[0] = '\0';
}

void instance_forgive(struct instance *i)
{
	if (i->failures == 0 || clock_mono_ns() - i->failed_ns < INSTANCE_FORGIVEN_NS)
		return;
	i->failures = 0;
	if (i->obstacle != INSTANCE_LEFT_OUT)
		i->last_error[0] = '\0';
}

void instance_delay_run(struct instance *i)
{
	instance_forgive(i);
	i->failed_ns = clock_mono_ns();
	i->run_delay_ns = backoff_ns(i->failures, INSTANCE_WAIT_NS, INSTANCE_WAIT_MAX_NS);
	i->failures++;
}

static bool is_users(const struct instance *i)
{
	return i->asker.is_set && !i->asker.is_operator;
}

static bool is_attached_by_user(const struct instance *i)
{
	return is_users(i) && (instance_was_added(i) || i->wish == INSTANCE_WISH_ATTACHED);
}

bool instance_is_asked_by_user(const struct instance *i)
{
	return is_attached_by_user(i) || (is_users(i) && i->n_recordings > 0);
}

bool instance_is_for_user(const struct instance *i)
{
	if (i->n_operator_recordings > 0)
		return false;
	return lifecycle_wants(i) ? is_attached_by_user(i) : i->n_recordings > 0;
}

uint32_t instance_budget_user(const struct instance *i)
{
	return is_users(i) ? i->asker.user : i->owner.uid;
}

const char *instance_budget_text(const struct instance *i)
{
	if (i->obstacle == INSTANCE_OVER_BUDGET)
		return instance_obstacle_text(i);
	if (i->run != NULL && run_is_withheld(i->run))
		return "not sampled: its user's part of the CPU budget is used up";
	return NULL;
}

void instance_wait_for_budget(struct instance *i)
{
	i->obstacle = INSTANCE_OVER_BUDGET;
	i->failed_ns = clock_mono_ns();
	i->run_delay_ns = INSTANCE_BUDGET_WAIT_NS;
}

void instance_has_executed(struct instance *i)
{
	struct process_identity now;

	if (i->obstacle != INSTANCE_LEFT_OUT || i->refused_program == 0 ||
	    !process_identity(i->pid, &now) || now.program_hash == i->refused_program)
		return;
	/* The stack of a process that ends is gone before the process is. */
	if (now.start_stack == 0)
		return;
	instance_forget_error(i);
	instance_delay_run(i);
}

void instance_note_run_cut_short(struct instance *i)
{
	if (!process_is_alive(i->pidfd))
		return;
	instance_delay_run(i);
	if (i->failures != INSTANCE_CUTS_LOGGED)
		return;
	(void)snprintf(i->last_error, sizeof(i->last_error),
		       "its profile has failed repeatedly in sentry-profd-unwind");
	log_error("sentry-profd-unwind has failed %u times with the profile of process %d: the "
		  "process runs on, and profiling begins again after longer and longer delays, up "
		  "to %u s",
		  i->failures, i->pid, (unsigned int)(INSTANCE_WAIT_MAX_NS / NS_PER_SEC));
}
