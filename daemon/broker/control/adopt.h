/*
 * Implements sentry-profctl attach and detach: a user adds and removes processes by pid,
 * independent of the configuration. Also finds the instance of a process that is to be recorded.
 */
#ifndef DAEMON_BROKER_CONTROL_ADOPT_H
#define DAEMON_BROKER_CONTROL_ADOPT_H

#include <stdint.h>

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct targets;

/* The number of processes that a user who is no operator may have attached at a time. */
#define ADOPT_USER_MAX 8

/*
 * Profiles the process from now on, whatever the configuration says about it. *ret: the answer
 * to the peer.
 */
void adopt_attach(struct targets *ts, const struct peer *peer, int32_t pid,
		  struct control_answer *ret);
/* Stops profiling the process until it is attached again. *ret: the answer to the peer. */
void adopt_detach(struct targets *ts, const struct peer *peer, int32_t pid,
		  struct control_answer *ret);

/*
 * Returns the instance for a recording of the process: the present one or a new one, which is
 * removed with its last recording. Returns NULL, with the reason in *ret, if the peer may not
 * record the process or it cannot be recorded.
 */
struct instance *adopt_for_recording(struct targets *ts, const struct peer *peer, int32_t pid,
				     struct control_answer *ret);

#endif
