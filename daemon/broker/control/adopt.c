#include "daemon/broker/control/adopt.h"

#include <string.h>
#include <unistd.h>

#include "daemon/broker/control/clients.h"
#include "daemon/broker/control/rights.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"

/*
 * The cost of a request in small messages (allowance.h). Another process to profile costs a user
 * who is no operator the allowance of a whole second, since a process of the user can make
 * capture hang for a second, until the broker kills capture.
 */
#define WORK	  10
#define WORK_USER 1000

/* What an operator wants does not wait for the part of the process's user of the CPU budget. */
static void lift_budget(struct instance *i, const struct peer *peer)
{
	if (!peer->is_operator || i->obstacle != INSTANCE_OVER_BUDGET)
		return;
	i->obstacle = INSTANCE_NO_OBSTACLE;
	i->run_delay_ns = 0;
}

/* Handles attach for an instance, whatever was decided about the instance before. */
static void attach_known(struct instance *i, const struct peer *peer, struct control_answer *ret)
{
	const bool was_released = i->released_until_ns != 0;

	i->released_until_ns = 0;
	lift_budget(i, peer);
	if (peer->is_operator)
		i->user_attached = false;
	if (!instance_is_left_alone(i) && i->is_sampled && lifecycle_wants(i)) {
		ret->m.result = was_released ? PROTOCOL_OK : PROTOCOL_RUNS_ALREADY;
		return;
	}
	if (i->obstacle == INSTANCE_LEFT_OUT)
		i->obstacle = INSTANCE_NO_OBSTACLE;
	i->last_error[0] = '\0';
	i->is_sampled = true;
	i->config.lifecycle = LIFECYCLE_MANUAL;
	if (i->origin == INSTANCE_RECORDED)
		i->origin = INSTANCE_ATTACHED;
	i->wish = INSTANCE_WISH_ATTACHED;
	i->is_started = true;
	i->user_attached = !peer->is_operator;
}

static void refuse_fault(enum process_fault fault, int32_t pid, struct control_answer *ret)
{
	switch (fault) {
	case PROCESS_GONE:
	case PROCESS_ZOMBIE:
		ret->m.result = PROTOCOL_NO_PROCESS;
		return;
	case PROCESS_THREAD:
		control_refuse(ret, PROTOCOL_FAILED, "is a thread of process %d", pid);
		return;
	case PROCESS_KERNEL_THREAD:
	case PROCESS_UNREADABLE:
	case PROCESS_SHORTAGE:
		control_refuse(ret, PROTOCOL_FAILED, "%s", process_fault_text(fault));
		return;
	case PROCESS_OK:
	case PROCESS_TRACED:
		break;
	}
}

static size_t count_added(const struct targets *ts, uint32_t uid)
{
	size_t n = 0;

	for (size_t k = 0; k < ts->n_instances; k++)
		n += instance_was_added(ts->instances[k]) && ts->instances[k]->uid == uid;
	return n;
}

/* Returns true, with the reason in *ret, if the peer may not attach the process. */
static bool refuse_new(const struct targets *ts, const struct peer *peer, const struct process *p,
		       struct control_answer *ret)
{
	if (p->pid == getpid()) {
		control_refuse(ret, PROTOCOL_FAILED, "is sentry-profd itself");
		return true;
	}
	if (peer->is_operator)
		return false;
	if (!rights_is_own(peer, p->pid, p->uid)) {
		ret->m.result = PROTOCOL_DENIED;
		return true;
	}
	if (count_added(ts, peer->uid) >= ADOPT_USER_MAX) {
		control_refuse(ret, PROTOCOL_BUSY,
			       "%d processes of this user are attached: detach one",
			       ADOPT_USER_MAX);
		return true;
	}
	return false;
}

static struct instance *add_instance(struct targets *ts, const struct peer *peer, struct process *p,
				     enum instance_origin origin, struct control_answer *ret)
{
	struct instance *i;
	int r;

	if (!refuse_new(ts, peer, p, ret)) {
		r = instance_add_attached(ts, p, origin, &i);
		if (r == 0)
			return i;
		control_refuse(ret, r == -ENOSPC ? PROTOCOL_BUSY : PROTOCOL_FAILED,
			       "cannot be attached: %s",
			       r == -ENOSPC ? "there are too many targets" : strerror(-r));
	}
	return NULL;
}

/* Adds a process that is no instance yet. NULL: *ret has the reason. */
static struct instance *look_and_add(struct targets *ts, const struct peer *peer, int32_t pid,
				     enum instance_origin origin, struct control_answer *ret)
{
	struct instance *i;
	struct process look;
	enum process_fault fault = process_look(pid, &look);

	if (fault != PROCESS_OK && fault != PROCESS_TRACED) {
		refuse_fault(fault, look.pid, ret);
		return NULL;
	}
	i = add_instance(ts, peer, &look, origin, ret);
	close_fd(&look.pidfd);
	if (i != NULL && !peer->is_operator)
		ret->work = WORK_USER;
	return i;
}

void adopt_attach(struct targets *ts, const struct peer *peer, int32_t pid,
		  struct control_answer *ret)
{
	struct instance *i = instance_of_pid(ts, pid);

	ret->work = WORK;
	if (i != NULL && !rights_may_control(peer, i)) {
		ret->m.result = PROTOCOL_DENIED;
		return;
	}
	if (i == NULL) {
		i = look_and_add(ts, peer, pid, INSTANCE_ATTACHED, ret);
		if (i != NULL)
			i->user_attached = !peer->is_operator;
	} else {
		attach_known(i, peer, ret);
		if (!peer->is_operator && ret->m.result == PROTOCOL_OK)
			ret->work = WORK_USER;
	}
	if (i != NULL)
		clients_answer(i, &ret->m);
}

struct instance *adopt_for_recording(struct targets *ts, const struct peer *peer, int32_t pid,
				     struct control_answer *ret)
{
	struct instance *i = instance_of_pid(ts, pid);

	ret->work = WORK;
	if (i == NULL)
		return look_and_add(ts, peer, pid, INSTANCE_RECORDED, ret);
	if (!rights_may_control(peer, i)) {
		ret->m.result = PROTOCOL_DENIED;
		return NULL;
	}
	if (instance_is_left_alone(i) || instance_is_let_go(i)) {
		control_refuse(ret, PROTOCOL_LEFT_OUT, "%s", i->last_error);
		return NULL;
	}
	lift_budget(i, peer);
	/* Capture may have to attach to the process, which costs as much as attach. */
	if (!peer->is_operator && i->target == NULL)
		ret->work = WORK_USER;
	return i;
}
