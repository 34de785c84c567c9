#include "daemon/broker/control/detach.h"

#include <stdio.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/control/rights.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/process/process.h"
#include "daemon/process/threads.h"
#include "lib/base/escape.h"

/* Costs in small messages (user_quota.h): of a request, and of a look at a thread's status. */
#define WORK	    10
#define WORK_THREAD 4

static bool is_about_itself(const struct protocol_request *m)
{
	return m->h.type == PROTOCOL_RELEASE && m->pid == 0;
}

static int32_t subject_of(const struct control_peer *peer, const struct protocol_request *m)
{
	return is_about_itself(m) ? peer->identity.pid : m->pid;
}

/* Returns the instance of the process with this start time; NULL: there is none. */
static struct instance *find(struct targets *ts, int32_t pid, uint64_t start_ticks)
{
	struct instance *i = instance_of_pid(ts, pid);

	return i != NULL && i->start_ticks == start_ticks ? i : NULL;
}

/* Called at every turn until the answer, so that the time of a release counts from the answer. */
static void let_go(struct instance *i, const struct protocol_request *m)
{
	const uint64_t seconds = m->seconds == 0 ? PROTOCOL_RELEASE_S : m->seconds;

	if (m->h.type == PROTOCOL_RELEASE) {
		instance_release(i, min_u64(seconds, PROTOCOL_RELEASE_MAX_S) * NS_PER_SEC);
	} else {
		i->wish = INSTANCE_WISH_DETACHED;
		i->released_until_ns = 0;
	}
}

/*
 * Returns true if capture traces the process, or if the broker may tell capture to trace it in this
 * turn.
 */
static bool has_run(struct targets *ts, int32_t pid)
{
	FOR_EACH_RUN (run, ts)
		if (run->pid == pid && ((run->in_capture && ts->children->capture.pid != 0) ||
					(run_is_open(run) && state_is_profiling(ts->state))))
			return true;
	return false;
}

/* Writes into the answer which process, one that is not the daemon's, traces the process now. */
static void name_tracer(int32_t tracer, struct control_answer *ret)
{
	char name[PROCESS_NAME_SIZE], shown[PROCESS_NAME_SIZE * ESCAPE_MAX], *to = shown;
	const char *from = name;

	process_name(tracer, name);
	while (*from != '\0')
		to += escape_next(&from, to);
	*to = '\0';
	ret->m.count = (uint32_t)tracer;
	(void)snprintf(ret->m.text, sizeof(ret->m.text), "%.200s (pid %d) traces it now", shown,
		       tracer);
}

/*
 * Returns true if a process of the daemon traces a thread of the process. Else names another tracer
 * in *ret, if there is one.
 */
static bool is_traced_by_us(struct targets *ts, int32_t pid, uint64_t start_ticks,
			    struct control_answer *ret)
{
	struct process_identity now;
	struct threads_tracers found;

	if (has_run(ts, pid))
		return true;
	if (!process_identity(pid, &now) || now.start_ticks != start_ticks)
		return false;
	ret->work += WORK_THREAD *
		     (uint32_t)threads_find_tracers(pid, ts->children->capture.pid, &found);
	if (found.traced_by_ours != 0)
		return true;
	if (found.other != 0)
		name_tracer(found.other, ret);
	return false;
}

void detach_request(struct targets *ts, const struct control_peer *peer,
		    const struct protocol_request *m, struct control_answer *ret)
{
	const struct peer *identity = &peer->identity;
	struct instance *i;

	ret->work = WORK;
	if (is_about_itself(m) && (identity->pid == 0 || identity->start_ticks == 0)) {
		ret->m.result = PROTOCOL_NO_PROCESS;
		return;
	}
	if (is_about_itself(m) && !peer_speaks(identity)) {
		ret->m.result = PROTOCOL_DENIED;
		return;
	}
	i = is_about_itself(m) ? find(ts, identity->pid, identity->start_ticks)
			       : rights_find_instance(ts, identity, m->pid, ret);
	if (i == NULL && !is_about_itself(m))
		return;
	if (i != NULL && i->wish == INSTANCE_WISH_DETACHED &&
	    !is_traced_by_us(ts, i->pid, i->start_ticks, ret)) {
		ret->m.result = PROTOCOL_LEFT_OUT;
		ret->m.pid = i->pid;
		ret->m.state = PROTOCOL_STATE_LEFT_OUT;
		return;
	}
	if (i != NULL)
		let_go(i, m);
	ret->note = i != NULL ? i->start_ticks : 0;
	ret->is_deferred = true;
}

void detach_go_on(struct targets *ts, const struct control_peer *peer,
		  const struct protocol_request *m, uint64_t waited_ns, struct control_answer *ret)
{
	const int32_t pid = subject_of(peer, m);
	const uint64_t start_ticks = ret->note != 0 ? ret->note : peer->identity.start_ticks;
	struct instance *i = find(ts, pid, start_ticks);

	ret->m.pid = pid;
	ret->m.state = PROTOCOL_STATE_LEFT_OUT;
	if (i != NULL && ret->note != 0 && !instance_is_let_go(i)) {
		control_refuse(ret, PROTOCOL_FAILED,
			       "is profiled again: it was attached, or another "
			       "section matches it since a reload");
		return;
	}
	if (i != NULL) {
		let_go(i, m);
		ret->note = start_ticks;
	}
	if (!is_traced_by_us(ts, pid, start_ticks, ret))
		return;
	if (waited_ns < DETACH_WAIT_NS) {
		ret->is_deferred = true;
		return;
	}
	ret->m.state = PROTOCOL_STATE_DETACHING;
	control_refuse(ret, PROTOCOL_TIMED_OUT,
		       "sentry-profd has not detached from it within %d s, since a call of the "
		       "process goes on or processor time is short; detaching goes on (see status)",
		       (int)(DETACH_WAIT_NS / NS_PER_SEC));
}
