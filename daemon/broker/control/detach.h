/*
 * Handles the requests detach and release (sentry-profctl detach, sentry_profd_release()). The
 * peer gets its answer when sentry-profd traces no thread of the process any more, so that a
 * debugger can attach.
 * - detach ends the profiling of a process until a user attaches the process again. The recordings
 *   of the process end.
 * - release suspends the profiling for a time, which counts from the answer. A second release can
 *   prolong the first. A release ends when its time is over and no other process traces a thread
 *   of the process. Then a new run begins, if the lifecycle wants one (targets/lifecycle.h). The
 *   recordings of the process wait for this run. A detached process cannot be released.
 *
 * These requests change the instance (targets/instance.h) only: targets/instances.h then stops and
 * starts runs.
 *
 * A process releases itself by a release with the pid 0. The process needs no instance for that.
 * But such a release ends with the answer, since only an instance stores a release.
 */
#ifndef DAEMON_BROKER_CONTROL_DETACH_H
#define DAEMON_BROKER_CONTROL_DETACH_H

#include <stdint.h>

#include "daemon/broker/control/control.h"

struct targets;

/*
 * How long a request waits for its answer. Capture detaches sooner, unless it gets no processor
 * time: capture waits at most 20 s for the ends of system calls that the detachment could disturb
 * (capture_prepare_detach() in lib/capture/detach.h), and at most 2 s because it has detached from
 * another target just before (DETACH_MAX_NS in daemon/capture/main.c).
 */
#define DETACH_WAIT_NS (25 * NS_PER_SEC)

/*
 * Handles PROTOCOL_DETACH and PROTOCOL_RELEASE. Defers the answer (ret->is_deferred), and sets
 * ret->note for detach_go_on(). Sets the result of *ret at once in these cases:
 * - PROTOCOL_LEFT_OUT: a user has detached the process before, and capture does not trace it;
 * - PROTOCOL_DENIED, PROTOCOL_NO_TARGET, PROTOCOL_NO_PROCESS: as in rights_find_instance();
 * - for a process that releases itself: PROTOCOL_NO_PROCESS if the process has ended or has no pid
 *   in the broker's pid namespace; PROTOCOL_DENIED if the connection does not speak for the process
 *   (peer_speaks()).
 */
void detach_request(struct targets *ts, const struct control_peer *peer,
		    const struct protocol_request *m, struct control_answer *ret);

/*
 * Called at every turn for a deferred request. Sets the answer when
 * - capture has detached, or the process has ended: PROTOCOL_OK. If another process traces the
 *   process, the answer names the tracer;
 * - the process is to be profiled again, after a request to attach, for example: PROTOCOL_FAILED;
 * - DETACH_WAIT_NS have passed: PROTOCOL_TIMED_OUT. Detaching goes on.
 * Otherwise defers the answer again.
 */
void detach_go_on(struct targets *ts, const struct control_peer *peer,
		  const struct protocol_request *m, uint64_t waited_ns, struct control_answer *ret);

#endif
