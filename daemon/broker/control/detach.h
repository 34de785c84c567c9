/*
 * Handles the requests detach and release (sentry-profctl detach, sentry_profd_release()): the
 * profiling of a process stops, for good (detach) or for some time (release). The peer gets its
 * answer when no thread of the process has a tracer of sentry-profd, so that a debugger can attach.
 *
 * A release ends when its time is over and no other process traces a thread of the process; then a
 * new run begins, if the lifecycle wants one. The time counts from the answer. A request to release
 * a released process prolongs the release. A detached process stays detached. The recordings of a
 * released process wait for its next run, those of a detached process end.
 *
 * These requests change the instance (targets/instance.h) only: targets/instances.h then stops and
 * starts runs. A process that is no instance yet can be attached to during its release, when
 * discovery finds it.
 */
#ifndef DAEMON_BROKER_CONTROL_DETACH_H
#define DAEMON_BROKER_CONTROL_DETACH_H

#include <stdint.h>

#include "daemon/broker/control/control.h"

struct targets;

/*
 * How long a request waits: longer than capture needs at most to detach (lib/capture/detach.h: 20
 * s; and DETACH_MAX_NS in daemon/capture/main.c), unless capture gets no processor time.
 */
#define DETACH_WAIT_NS (25 * NS_PER_SEC)

/*
 * Handles PROTOCOL_DETACH and PROTOCOL_RELEASE. Usually defers the answer (ret->is_deferred), and
 * passes detach_go_on() the start time of the process in ret->note.
 */
void detach_request(struct targets *ts, const struct control_peer *peer,
		    const struct protocol_request *m, struct control_answer *ret);

/*
 * Called at every turn for a request that waits: sets the answer when capture has detached, when
 * the process has ended, when a user has attached it again, or after DETACH_WAIT_NS. The answer
 * names another process that traces the process. Detaching goes on after PROTOCOL_TIMED_OUT.
 */
void detach_go_on(struct targets *ts, const struct control_peer *peer,
		  const struct protocol_request *m, uint64_t waited_ns, struct control_answer *ret);

#endif
