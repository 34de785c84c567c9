/*
 * Decides when an instance is to be profiled: the two lifecycle modes of the specification
 * (Sentry's SDK documentation, "Profiles" 2.5.0, sections "Profile Lifecycle Modes", "Start
 * Profiler" and "Stop Profiler"), as a state machine on struct instance. The functions change that
 * struct only: they start no process, read no clock and log nothing. The caller reports events and
 * logs why a call had no effect. instances.h acts on lifecycle_wants().
 *
 * An instance with the origin INSTANCE_RECORDED serves recordings only and is never profiled,
 * because the user who records it need not have the right to send profiles
 * (control/attach_request.h). Start and stop have no effect on such an instance, and callers report
 * no root spans of it.
 *
 * The sampling decision of Sentry's profile session (is_sampled, session_sampling.h) comes first in
 * both modes: an instance that is not sampled is never profiled.
 *
 * manual: the profiler runs from lifecycle_start() to lifecycle_stop(). Root spans have no
 * effect.
 *
 * trace: the profiler runs while at least one sampled root span is open. The Sentry SDK in the
 * process decides for each root span whether the span is sampled. After the end of the last span
 * the profiler runs until the present chunk is finished. That is so even if the span ended before
 * the profiler had started, because the span's transaction already refers to a profile. Start and
 * stop have no effect.
 */
#ifndef DAEMON_BROKER_TARGETS_LIFECYCLE_H
#define DAEMON_BROKER_TARGETS_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct instance;

/* The outcome of a request, for the answer to the client and for a log line at debug level. */
struct lifecycle_result {
	enum protocol_result answer;
	/* A sentence without a full stop; "": the call has an effect. */
	const char *why_not;
};

/*
 * Returns true if the instance is to be profiled now by its mode. Does not consider what can
 * prevent that: instance_is_let_go(), instance.obstacle, and a rate limit
 * (children/server_limit.h).
 */
bool lifecycle_wants(const struct instance *instance);

/*
 * Implement start_profiler() and stop_profiler() of the specification. Answers other than
 * PROTOCOL_OK: PROTOCOL_NO_TARGET (INSTANCE_RECORDED), PROTOCOL_TRACE_MODE, PROTOCOL_NOT_SAMPLED,
 * PROTOCOL_RUNS_ALREADY, PROTOCOL_NOT_RUNNING.
 */
struct lifecycle_result lifecycle_start(struct instance *instance);
struct lifecycle_result lifecycle_stop(struct instance *instance);

/*
 * Call it when a sampled root span begins or ends. Counts spans in both modes, so that the count is
 * right if a reload of the configuration changes the mode. Answers:
 *
 *     PROTOCOL_NOT_RUNNING    in manual mode, or if a span ends and none is open
 *     PROTOCOL_NOT_SAMPLED    otherwise, if the instance is not sampled
 *     PROTOCOL_OK             otherwise
 */
struct lifecycle_result lifecycle_span(struct instance *instance, bool begins);

/*
 * Call it when unwind has finished a chunk of the instance's run, delivered or lost, while the run
 * is RUN_PROFILED. Also call it when a release of the process (instance_release) is over: a root
 * span that ended during the release needs no run, since its transaction refers to no profile.
 */
void lifecycle_chunk_finished(struct instance *instance);

/*
 * Call it about once a second. now_ns: CLOCK_MONOTONIC, never less than before; chunk_ns: the
 * length of a chunk.
 *
 * unwind makes no empty chunk, so the chunk in which the last root span ended may never be
 * reported. At the first call after the end of the span this function notes the time. At a call
 * 2 * chunk_ns later or more it treats the chunk as finished.
 *
 * Returns true if a sampled instance in trace mode has reported no root span, sampled or not, for
 * LIFECYCLE_NO_SPAN_NS: tracing may be off in the process, and the caller logs a warning. Returns
 * true at most once for each instance.
 */
#define LIFECYCLE_NO_SPAN_NS (60 * NS_PER_SEC)
must_check bool lifecycle_check(struct instance *instance, uint64_t now_ns, uint64_t chunk_ns);

/* Call it when the process has reported a root span, sampled or not: tracing is on. */
void lifecycle_span_seen(struct instance *instance);

/* Returns the state of i for clients; PROTOCOL_STATE_NONE if i is NULL or instance_is_gone(). */
enum protocol_state lifecycle_state(const struct instance *i);
/*
 * Returns the profiler id of the open run of i, or, if i has no open run, the id that the next run
 * will have. Runs for recordings only do not count. Returns "" if i is NULL. The text is valid
 * until *i or its run changes.
 */
const char *lifecycle_profiler_id(const struct instance *i);

#endif
