#include "daemon/broker/control/attach_request.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/control/clients.h"
#include "daemon/broker/control/rights.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/common/log.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"

/*
 * The cost of a request in small messages (user_quota.h). Another process to profile costs a user
 * who is no operator the quota of a whole second, since a process of the user can make
 * capture hang for a second, until the broker kills capture.
 */
#define WORK	  10
#define WORK_USER 1000

/*
 * Returns true if the administrator has decided about the process: a section matches it, the
 * command line names it, or an operator has attached it.
 */
static bool is_admins(const struct instance *i)
{
	switch (i->origin) {
	case INSTANCE_OF_SECTION:
	case INSTANCE_GIVEN:
	case INSTANCE_CHILD:
		return true;
	case INSTANCE_ATTACHED:
		return i->asker.is_operator;
	case INSTANCE_LEFT_SECTION:
	case INSTANCE_RECORDED:
		break;
	}
	return false;
}

/*
 * With --children, the daemon would profile each child of a process that a user has added, and send
 * its profile.
 */
static enum user_attach user_attach_of(const struct targets *ts)
{
	return ts->state->options.children ? USER_ATTACH_NO : ts->state->options.config.user_attach;
}

static bool users_may(const struct targets *ts, bool sends)
{
	const enum user_attach setting = user_attach_of(ts);

	return setting == USER_ATTACH_SEND || (setting == USER_ATTACH_RECORD && !sends);
}

static const char *why_users_may_not(const struct targets *ts)
{
	if (ts->state->options.children)
		return "sentry-profd --children: only operators may add processes";
	return user_attach_of(ts) == USER_ATTACH_NO
		       ? "user_attach = no in [sentry]: only operators may profile processes that "
			 "no section matches"
		       : "user_attach = record in [sentry]: only operators may send profiles of "
			 "processes that no section matches (record, top and stack work)";
}

/*
 * Returns true, with the reason in *ret, if the setting user_attach forbids what the peer asks for.
 * i: the instance of the process; NULL: it has none.
 */
static bool refuse_user(const struct targets *ts, const struct peer *peer, const struct instance *i,
			bool sends, struct control_answer *ret)
{
	if (peer->is_operator || (i != NULL && is_admins(i)) || users_may(ts, sends))
		return false;
	control_refuse(ret, PROTOCOL_DENIED, "%s", why_users_may_not(ts));
	return true;
}

static void set_asker(struct instance *i, const struct peer *peer)
{
	i->asker = (struct instance_asker){.is_set = true,
					   .is_operator = peer->is_operator,
					   .uid = peer->uid,
					   .user = peer->user};
}

static void log_attach(const struct instance *i, const struct peer *peer)
{
	log_info("process %d (uid %u) is to be profiled: requested by uid %u (pid %d)%s", i->pid,
		 i->owner.uid, peer->uid, peer->pid, peer->is_operator ? ", an operator" : "");
}

/* A process that an operator wants does not wait for a user's part of the CPU budget. */
static void lift_budget(struct instance *i, const struct peer *peer)
{
	if (!peer->is_operator || i->obstacle != INSTANCE_OVER_BUDGET)
		return;
	i->obstacle = INSTANCE_NO_OBSTACLE;
	i->run_delay_ns = 0;
}

static void refuse_fault(enum process_fault fault, int32_t pid, struct control_answer *ret)
{
	switch (fault) {
	case PROCESS_GONE:
	case PROCESS_ZOMBIE:
		ret->m.result = PROTOCOL_NO_PROCESS;
		return;
	case PROCESS_THREAD:
		control_refuse(ret, PROTOCOL_FAILED, "is a thread of process %d: use that pid",
			       pid);
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

/*
 * Logs that the user has reached a limit: once, until the user has room. The mark is on the
 * processes that count for the user now, so a process that is counted later has none.
 */
static void log_user_full(struct targets *ts, uint32_t user)
{
	bool is_new = false;

	for (size_t k = 0; k < ts->n_instances; k++) {
		struct instance *i = ts->instances[k];

		if (!instance_is_asked_by_user(i) || i->asker.user != user)
			continue;
		is_new |= !i->asker.is_limit_logged;
		i->asker.is_limit_logged = true;
	}
	if (is_new)
		log_warning(
			"uid %u has %d attached or recorded processes, the maximum: further ones "
			"are refused",
			user, ATTACH_REQUEST_USER_MAX);
}

/*
 * Returns true, with the reason in *ret, if the peer is no operator and has asked for too many
 * processes, or all users together have.
 */
static bool refuse_another(struct targets *ts, const struct peer *peer, struct control_answer *ret)
{
	size_t of_user = 0, of_all = 0;

	if (peer->is_operator)
		return false;
	for (size_t k = 0; k < ts->n_instances; k++) {
		const struct instance *i = ts->instances[k];

		of_all += instance_is_asked_by_user(i);
		of_user += instance_is_asked_by_user(i) && i->asker.user == peer->user;
	}
	if (of_all < ATTACH_REQUEST_USERS_MAX)
		ts->warned_users_full = false;
	if (of_user >= ATTACH_REQUEST_USER_MAX) {
		log_user_full(ts, peer->user);
		control_refuse(ret, PROTOCOL_BUSY,
			       "%d processes of this user are attached or recorded: detach one",
			       ATTACH_REQUEST_USER_MAX);
		return true;
	}
	if (of_all < ATTACH_REQUEST_USERS_MAX)
		return false;
	if (!ts->warned_users_full)
		log_warning("users have %d attached or recorded processes, the maximum of all "
			    "together: further ones are refused (process %d, uid %u, and perhaps "
			    "others)",
			    ATTACH_REQUEST_USERS_MAX, peer->pid, peer->uid);
	ts->warned_users_full = true;
	control_refuse(
		ret, PROTOCOL_BUSY,
		"all users together have %d attached or recorded processes, the maximum: try "
		"again later",
		ATTACH_REQUEST_USERS_MAX);
	return true;
}

/* Returns true, with the reason in *ret, if the peer may not attach the process. */
static bool refuse_new(struct targets *ts, const struct peer *peer, const struct process *p,
		       bool sends, struct control_answer *ret)
{
	if (p->pid == getpid()) {
		control_refuse(ret, PROTOCOL_FAILED, "is sentry-profd itself");
		return true;
	}
	if (peer->is_operator)
		return false;
	if (!rights_is_own(peer, p->pid)) {
		ret->m.result = PROTOCOL_DENIED;
		return true;
	}
	if (refuse_user(ts, peer, NULL, sends, ret))
		return true;
	return refuse_another(ts, peer, ret);
}

static struct instance *add_instance(struct targets *ts, const struct peer *peer, struct process *p,
				     enum instance_origin origin, struct control_answer *ret)
{
	struct instance *i;
	int r;

	if (!refuse_new(ts, peer, p, origin == INSTANCE_ATTACHED, ret)) {
		r = instance_add_attached(ts, p, origin, &i);
		if (r == 0) {
			set_asker(i, peer);
			/* The process may have executed another program since the last look. */
			if (peer->is_operator ||
			    (i->owner.kind != OWNER_MIXED && i->owner.uid == peer->uid))
				return i;
			instance_becomes(i, INSTANCE_REMOVED);
			ret->m.result = PROTOCOL_DENIED;
			return NULL;
		}
		if (r == -ENOSPC)
			control_refuse(ret, PROTOCOL_BUSY,
				       "cannot be attached: sentry-profd has %u targets, the "
				       "maximum: detach some, or write rules that match fewer",
				       INSTANCES_MAX);
		else
			control_refuse(ret, PROTOCOL_FAILED, "cannot be attached: %s",
				       strerror(-r));
	}
	return NULL;
}

/* Handles attach for an instance, whatever was decided about the instance before. */
static void attach_known(struct targets *ts, struct instance *i, const struct peer *peer,
			 struct control_answer *ret)
{
	const uint64_t released_until_ns = i->released_until_ns;

	i->released_until_ns = 0;
	lift_budget(i, peer);
	if (peer->is_operator && instance_is_asked_by_user(i))
		set_asker(i, peer);
	if (!instance_is_left_alone(i) && i->is_sampled && lifecycle_wants(i)) {
		ret->m.result = released_until_ns != 0 ? PROTOCOL_OK : PROTOCOL_RUNS_ALREADY;
		return;
	}
	if (!instance_is_asked_by_user(i) && refuse_another(ts, peer, ret)) {
		i->released_until_ns = released_until_ns;
		return;
	}
	instance_forget_error(i);
	i->is_sampled = true;
	i->config.lifecycle = LIFECYCLE_MANUAL;
	if (i->origin == INSTANCE_RECORDED || i->origin == INSTANCE_LEFT_SECTION)
		i->origin = INSTANCE_ATTACHED;
	i->wish = INSTANCE_WISH_ATTACHED;
	i->is_started = true;
	set_asker(i, peer);
	log_attach(i, peer);
}

/*
 * Adds a process that is no instance yet. Returns NULL, with the reason in *ret, if that is not
 * possible.
 */
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

/*
 * Returns the instance of the process; NULL: it has none. Reads the owner of a process that has no
 * run, since it may have been read long ago: a change may remove the instance. The caller checks
 * the rights afterwards, so that each change after this check is counted.
 */
static struct instance *find_instance(struct targets *ts, int32_t pid)
{
	struct instance *i = instance_of_pid(ts, pid);

	if (i == NULL)
		return NULL;
	if (i->run == NULL && owners_look(ts, i) == -ESRCH)
		instance_becomes(i, INSTANCE_ENDED);
	return instance_is_gone(i) ? NULL : i;
}

void attach_request_handle(struct targets *ts, const struct peer *peer, int32_t pid,
			   struct control_answer *ret)
{
	struct instance *i = find_instance(ts, pid);

	ret->work = WORK;
	if (i != NULL && !rights_may_control(peer, i)) {
		ret->m.result = PROTOCOL_DENIED;
		return;
	}
	if (i == NULL) {
		i = look_and_add(ts, peer, pid, INSTANCE_ATTACHED, ret);
		if (i != NULL)
			log_attach(i, peer);
	} else {
		if (refuse_user(ts, peer, i, true, ret))
			return;
		attach_known(ts, i, peer, ret);
		if (!peer->is_operator && ret->m.result == PROTOCOL_OK)
			ret->work = WORK_USER;
	}
	if (i != NULL)
		clients_answer(i, &ret->m);
}

struct instance *attach_request_for_recording(struct targets *ts, const struct peer *peer,
					      int32_t pid, struct control_answer *ret)
{
	struct instance *i = find_instance(ts, pid);

	ret->work = WORK;
	if (i == NULL)
		return look_and_add(ts, peer, pid, INSTANCE_RECORDED, ret);
	if (!rights_may_control(peer, i)) {
		ret->m.result = PROTOCOL_DENIED;
		return NULL;
	}
	if (refuse_user(ts, peer, i, false, ret))
		return NULL;
	if (instance_is_left_alone(i) || instance_is_let_go(i)) {
		control_refuse(ret, PROTOCOL_LEFT_OUT, "%s", instance_obstacle_text(i));
		return NULL;
	}
	/*
	 * The section of the process does not want it profiled: the process is profiled for
	 * recordings only.
	 */
	if (!instance_was_added(i) && i->wish != INSTANCE_WISH_ATTACHED &&
	    !instance_is_asked_by_user(i) && !lifecycle_wants(i)) {
		if (refuse_another(ts, peer, ret))
			return NULL;
		set_asker(i, peer);
	}
	lift_budget(i, peer);
	/* Capture may have to attach to the process, which costs as much as attach. */
	if (!peer->is_operator && i->run == NULL)
		ret->work = WORK_USER;
	return i;
}

void attach_request_config_changed(struct targets *ts)
{
	for (size_t k = 0; k < ts->n_instances; k++) {
		struct instance *i = ts->instances[k];

		if (!instance_was_added(i) || is_admins(i) || i->asker.is_operator ||
		    users_may(ts, i->origin == INSTANCE_ATTACHED))
			continue;
		(void)snprintf(i->last_error, sizeof(i->last_error), "%s", why_users_may_not(ts));
		instance_becomes(i, INSTANCE_REMOVED);
	}
}
