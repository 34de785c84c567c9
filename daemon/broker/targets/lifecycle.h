/*
 * When an instance is profiled: the two lifecycle modes of the specification
 * (Sentry's SDK documentation, "Profiles" 2.5.0, sections "Profile Lifecycle
 * Modes", "Start Profiler" and "Stop Profiler"), as a state machine on struct
 * instance. It changes that struct and nothing else: no process, no clock, no
 * line of a log. The caller tells what happens, logs what a call had no effect
 * for, and acts on lifecycle_wants.
 *
 * The session's decision (is_sampled) comes first in both modes: where it is
 * no, nothing starts a profiler.
 *
 * manual: runs from lifecycle_start to lifecycle_stop; spans have no say.
 * trace: runs while at least one sampled root span is open, and on until the
 * chunk is finished in which the last one ended; also where that was over
 * before the profiler had started, since its transaction says that there is a
 * profile. Which root spans are sampled is decided for each anew, by the
 * tracing in the target; those that are not are not told here. Start and stop
 * have no say.
 */
#ifndef DAEMON_BROKER_TARGETS_LIFECYCLE_H
#define DAEMON_BROKER_TARGETS_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct instance;

/* What a call came to, for who asked and for a line at debug level. */
struct lifecycle_result {
	enum protocol_result answer;
	/* A whole sentence without a full stop; "": the call has an effect. */
	const char *why_not;
};

/* Is it to be profiled now? */
bool lifecycle_wants(const struct instance *instance);

/* What start_profiler() and stop_profiler() of the specification do. */
struct lifecycle_result lifecycle_start(struct instance *instance);
struct lifecycle_result lifecycle_stop(struct instance *instance);

/*
 * A sampled root span begins or ends. They are counted in both modes, so that
 * another mode after a reload of the configuration finds what is open.
 */
struct lifecycle_result lifecycle_span(struct instance *instance, bool begins);

/*
 * A chunk of the instance's target is finished, whatever became of it; not of
 * a target that is being stopped.
 */
void lifecycle_chunk(struct instance *instance);

/*
 * The time has come to now_ns (CLOCK_MONOTONIC, never less than the last):
 * where there is a chunk of which nothing is heard, it counts as finished when
 * twice a chunk's length has passed since the last root span's end: one that
 * would be empty is not made. Returns true, once for each instance, where a
 * target in trace mode and sampled has reported no span in
 * LIFECYCLE_SILENT_NS, be it sampled or not: is its tracing off?
 */
#define LIFECYCLE_SILENT_NS (60 * NS_PER_SEC)
must_check bool lifecycle_time(struct instance *instance, uint64_t now_ns, uint64_t chunk_ns);

/* Tracing is on in the target: it has told of a root span, sampled or not. */
void lifecycle_traced(struct instance *instance);

/* What is done with an instance; i may be NULL. */
enum protocol_state lifecycle_state(const struct instance *i);
/*
 * The profiler's id: of the run that goes on, or of the next one, where the
 * last one is coming to its end.
 */
const char *lifecycle_profiler_id(const struct instance *i);

#endif
