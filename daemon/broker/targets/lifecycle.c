#include "daemon/broker/targets/lifecycle.h"

#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/config/config.h"

static const struct lifecycle_result has_effect = {PROTOCOL_OK, ""};
static const struct lifecycle_result not_sampled = {
	PROTOCOL_NOT_SAMPLED, "the profiler does not start: the session is not sampled "
			      "(profile_session_sample_rate)"};

static const struct lifecycle_result only_recorded = {
	PROTOCOL_NO_TARGET,
	"start and stop have no effect: no section matches the process, which is "
	"recorded only"};

static struct lifecycle_result no_effect(enum protocol_result answer, const char *why_not)
{
	return (struct lifecycle_result){answer, why_not};
}

static bool is_trace(const struct instance *i)
{
	return i->config.lifecycle == LIFECYCLE_TRACE;
}

bool lifecycle_wants(const struct instance *i)
{
	if (!i->is_sampled || i->origin == INSTANCE_RECORDED)
		return false;
	if (!is_trace(i))
		return i->is_started;
	return i->root_spans > 0 || i->awaits_last_chunk;
}

static void set_started(struct instance *i, bool starts)
{
	if (i->wish != INSTANCE_WISH_ATTACHED && i->wish != INSTANCE_WISH_DETACHED)
		i->wish = starts ? INSTANCE_WISH_STARTED : INSTANCE_WISH_STOPPED;
	i->is_started = starts;
}

struct lifecycle_result lifecycle_start(struct instance *i)
{
	if (i->origin == INSTANCE_RECORDED)
		return only_recorded;
	if (is_trace(i))
		return no_effect(PROTOCOL_TRACE_MODE, "start has no effect: profile_lifecycle is "
						      "trace, the profiler starts with the first "
						      "sampled root span");
	if (!i->is_sampled)
		return not_sampled;
	if (i->is_started)
		return no_effect(PROTOCOL_RUNS_ALREADY,
				 "start has no effect: the profiler is already "
				 "running");
	set_started(i, true);
	return has_effect;
}

struct lifecycle_result lifecycle_stop(struct instance *i)
{
	if (i->origin == INSTANCE_RECORDED)
		return only_recorded;
	if (is_trace(i))
		return no_effect(PROTOCOL_TRACE_MODE, "stop has no effect: profile_lifecycle is "
						      "trace, the profiler stops after the last "
						      "sampled root span");
	if (!i->is_started)
		return no_effect(PROTOCOL_NOT_RUNNING,
				 "stop has no effect: the profiler is not running");
	set_started(i, false);
	return has_effect;
}

struct lifecycle_result lifecycle_span(struct instance *i, bool begins)
{
	if (!begins && i->root_spans == 0)
		return no_effect(PROTOCOL_NOT_RUNNING, "the end of a root span has no effect: none "
						       "is open");
	i->no_span_check_done = true;
	i->root_spans += begins ? 1u : UINT32_MAX;
	/* Also if the span ended before the profiler could start. */
	i->awaits_last_chunk = i->root_spans == 0;
	i->awaits_last_chunk_ns = 0;
	if (!is_trace(i))
		return no_effect(PROTOCOL_NOT_RUNNING, "a root span has no effect: "
						       "profile_lifecycle is manual");
	return i->is_sampled ? has_effect : not_sampled;
}

void lifecycle_chunk_finished(struct instance *i)
{
	i->awaits_last_chunk = false;
}

void lifecycle_span_seen(struct instance *i)
{
	i->no_span_check_done = true;
}

bool lifecycle_check(struct instance *i, uint64_t now_ns, uint64_t chunk_ns)
{
	if (i->awaits_last_chunk && i->awaits_last_chunk_ns == 0)
		i->awaits_last_chunk_ns = now_ns;
	if (i->awaits_last_chunk && now_ns - i->awaits_last_chunk_ns >= 2 * chunk_ns)
		i->awaits_last_chunk = false;
	if (!is_trace(i) || !i->is_sampled || i->no_span_check_done ||
	    i->origin == INSTANCE_RECORDED)
		return false;
	if (i->no_span_since_ns == 0)
		i->no_span_since_ns = now_ns;
	i->no_span_check_done = now_ns - i->no_span_since_ns >= LIFECYCLE_NO_SPAN_NS;
	return i->no_span_check_done;
}

enum protocol_state lifecycle_state(const struct instance *i)
{
	if (i == NULL || instance_is_gone(i))
		return PROTOCOL_STATE_NONE;
	if (!i->is_sampled)
		return PROTOCOL_STATE_UNSAMPLED;
	if (instance_is_let_go(i) && i->run != NULL && i->run->in_capture)
		return PROTOCOL_STATE_DETACHING;
	if (instance_is_left_alone(i) || instance_is_let_go(i))
		return PROTOCOL_STATE_LEFT_OUT;
	if (server_limit_stops_sampling(i->ship))
		return PROTOCOL_STATE_LIMITED;
	if (i->obstacle != INSTANCE_NO_OBSTACLE && lifecycle_wants(i))
		return PROTOCOL_STATE_WAITING;
	if (i->run != NULL && i->run->crash.tid != 0)
		return PROTOCOL_STATE_CRASHED;
	if (i->run != NULL && i->run->retry_ns != 0)
		return PROTOCOL_STATE_TRACED_BY_OTHER;
	return lifecycle_wants(i) ? PROTOCOL_STATE_PROFILING : PROTOCOL_STATE_STOPPED;
}

const char *lifecycle_profiler_id(const struct instance *i)
{
	if (i == NULL)
		return "";
	if (i->run != NULL && run_is_open(i->run) && !i->run->is_for_recordings)
		return i->run->profile.profiler_id;
	if (i->broken_off.profiler_id[0] != '\0' && !i->broken_off.is_for_recordings)
		return i->broken_off.profiler_id;
	return i->next_profiler_id;
}
