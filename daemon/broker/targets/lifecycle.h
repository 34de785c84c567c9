/*
 * Decides when an instance is profiled: the two lifecycle modes of the specification (Sentry's
 * SDK documentation, "Profiles" 2.5.0, sections "Profile Lifecycle Modes", "Start Profiler" and
 * "Stop Profiler"), as a state machine on struct instance. The functions change that struct
 * only: they start no process, read no clock and log nothing. The caller reports events, logs
 * why a call had no effect, and acts on lifecycle_wants().
 *
 * An instance that was added for recordings is not profiled: the user who records it may not be one
 * who may send profiles (control/attach_request.h). Start, stop and root spans have no effect on
 * it.
 *
 * The sampling decision of Sentry's profile session (is_sampled, sampling.h) comes first in both
 * modes: an instance that is not sampled is never profiled.
 *
 * manual: the profiler runs from lifecycle_start() to lifecycle_stop(). Root spans have no
 * effect.
 *
 * trace: the profiler runs while at least one sampled root span is open, and on until the chunk
 * in which the last one ended is finished. The profiler runs to the end of that chunk even if the
 * span ended before the profiler had started: the span's transaction already refers to a profile.
 * The Sentry SDK in the process decides for each root span whether it is sampled. Start and stop
 * have no effect.
 */
#ifndef DAEMON_BROKER_TARGETS_LIFECYCLE_H
#define DAEMON_BROKER_TARGETS_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct instance;

/* The outcome of a call, for the answer to the caller and for a log line at debug level. */
struct lifecycle_result {
	enum protocol_result answer;
	/* A sentence without a full stop; "": the call has an effect. */
	const char *why_not;
};

/* Returns true if the instance is to be profiled now. */
bool lifecycle_wants(const struct instance *instance);

/* Implement start_profiler() and stop_profiler() of the specification. */
struct lifecycle_result lifecycle_start(struct instance *instance);
struct lifecycle_result lifecycle_stop(struct instance *instance);

/*
 * A sampled root span begins or ends. Spans are counted in both modes, so that the count is
 * right if a reload of the configuration changes the mode.
 */
struct lifecycle_result lifecycle_span(struct instance *instance, bool begins);

/*
 * A chunk of the instance's run is finished, whether it was delivered or lost; or a release of the
 * process (instance_release) is over: the begin of the release has finished the chunk. Not to be
 * called for a run that is being stopped.
 */
void lifecycle_chunk_finished(struct instance *instance);

/*
 * Called about once a second. now_ns: CLOCK_MONOTONIC, never less than before; chunk_ns: the
 * length of a chunk. The chunk in which the last root span ended may never be reported, since an
 * empty chunk is not made. It counts as finished when twice chunk_ns has passed since the end of
 * that span. Returns true, once for each instance, if an instance in trace mode that is sampled
 * has reported no root span, sampled or not, within LIFECYCLE_NO_SPAN_NS: tracing may be off in
 * the process, and the caller logs a warning.
 */
#define LIFECYCLE_NO_SPAN_NS (60 * NS_PER_SEC)
must_check bool lifecycle_check(struct instance *instance, uint64_t now_ns, uint64_t chunk_ns);

/* The process has reported a root span, sampled or not: tracing is on. */
void lifecycle_span_seen(struct instance *instance);

/* Returns the state of an instance as clients see it; i may be NULL. */
enum protocol_state lifecycle_state(const struct instance *i);
/*
 * Returns the profiler id: of the current run, or of the next one if there is no run or it is
 * being stopped. "" if i is NULL.
 */
const char *lifecycle_profiler_id(const struct instance *i);

#endif
