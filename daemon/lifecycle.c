#include "daemon/lifecycle.h"

#include "daemon/instance.h"

static bool is_trace(const struct instance *i)
{
	return i->config.lifecycle == LIFECYCLE_TRACE;
}

bool lifecycle_wants(const struct instance *i)
{
	if (!i->is_sampled)
		return false;
	if (!is_trace(i))
		return i->is_started;
	return i->root_spans > 0 || i->lingers;
}

enum lifecycle_result lifecycle_start(struct instance *i)
{
	if (is_trace(i))
		return LIFECYCLE_TRACE_START;
	if (!i->is_sampled)
		return LIFECYCLE_NOT_SAMPLED;
	if (i->is_started)
		return LIFECYCLE_RUNS_ALREADY;
	i->is_told = true;
	i->is_started = true;
	return LIFECYCLE_OK;
}

enum lifecycle_result lifecycle_stop(struct instance *i)
{
	if (is_trace(i))
		return LIFECYCLE_TRACE_STOP;
	if (!i->is_started)
		return LIFECYCLE_NOT_RUNNING;
	i->is_told = true;
	i->is_started = false;
	return LIFECYCLE_OK;
}

enum lifecycle_result lifecycle_span(struct instance *i, bool begins)
{
	if (!begins && i->root_spans == 0)
		return LIFECYCLE_NO_SPAN;
	i->is_traced = true;
	i->root_spans += begins ? 1u : UINT32_MAX;
	/* Also where it was over before the profiler could start. */
	i->lingers = i->root_spans == 0;
	i->lingers_ns = 0;
	if (!is_trace(i))
		return LIFECYCLE_MANUAL_SPAN;
	return i->is_sampled ? LIFECYCLE_OK : LIFECYCLE_NOT_SAMPLED;
}

void lifecycle_chunk(struct instance *i)
{
	i->lingers = false;
}

void lifecycle_traced(struct instance *i)
{
	i->is_traced = true;
}

bool lifecycle_time(struct instance *i, uint64_t now_ns, uint64_t chunk_ns)
{
	if (i->lingers && i->lingers_ns == 0)
		i->lingers_ns = now_ns;
	if (i->lingers && now_ns - i->lingers_ns >= 2 * chunk_ns)
		i->lingers = false;
	if (!is_trace(i) || !i->is_sampled || i->is_traced || i->silence_told)
		return false;
	if (i->silent_ns == 0)
		i->silent_ns = now_ns;
	i->silence_told = now_ns - i->silent_ns >= LIFECYCLE_SILENT_NS;
	return i->silence_told;
}

const char *lifecycle_result_text(enum lifecycle_result result)
{
	switch (result) {
	case LIFECYCLE_OK:
		return "";
	case LIFECYCLE_RUNS_ALREADY:
		return "start has no effect: the profiler is already running";
	case LIFECYCLE_NOT_RUNNING:
		return "stop has no effect: the profiler is not running";
	case LIFECYCLE_NOT_SAMPLED:
		return "the profiler does not start: the session is not "
		       "sampled (profile_session_sample_rate)";
	case LIFECYCLE_TRACE_START:
		return "start has no effect: profile_lifecycle is trace, the "
		       "profiler starts with the first sampled root span";
	case LIFECYCLE_TRACE_STOP:
		return "stop has no effect: profile_lifecycle is trace, the "
		       "profiler stops after the last sampled root span";
	case LIFECYCLE_MANUAL_SPAN:
		return "a root span has no effect: profile_lifecycle is manual";
	case LIFECYCLE_NO_SPAN:
		return "the end of a root span has no effect: none is open";
	}
	return "";
}
