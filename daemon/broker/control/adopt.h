/*
 * Handles the request attach (sentry-profctl attach): a user adds a process by its pid, independent
 * of the configuration. Also finds the instance (targets/instance.h) of a process that is to be
 * recorded (recordings.h). detach.h is the opposite.
 *
 * What users who are no operators may have done with their processes is set by user_attach in
 * [sentry]: record, send, or no. With record they may record a process and not attach it, since an
 * attached one is sent with the DSN of the configuration, and with the release and environment that
 * its user chose. A process about which the administrator has decided is not concerned: one that a
 * section matches, the command line names, or an operator has attached.
 *
 * The request changes the instance only: targets/instances.h then starts a target, and capture
 * attaches by ptrace.
 */
#ifndef DAEMON_BROKER_CONTROL_ADOPT_H
#define DAEMON_BROKER_CONTROL_ADOPT_H

#include <stdint.h>

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct targets;

/*
 * The maximum number of processes that are attached or recorded at the request of one user, and of
 * all users who are no operators. Both count processes that these users have added, and processes
 * of a section that would not be profiled without their request. Sections and operators have the
 * rest of HEARTBEAT_SLOTS, three quarters. Operators (control/rights.h) have no such limit. struct
 * peer has whose limit counts.
 */
#define ADOPT_USER_MAX	8
#define ADOPT_USERS_MAX 64

/*
 * Handles attach: the process is profiled from now on, whatever the configuration says about it.
 * If the process is no instance yet, makes one. Ends a release. *ret: the answer to the peer.
 */
void adopt_attach(struct targets *ts, const struct peer *peer, int32_t pid,
		  struct control_answer *ret);

/*
 * Returns the instance for a recording of the process. If the process is no instance yet, makes
 * one, which is removed with its last recording; the caller adds the recording. If the peer may
 * not record the process, or the process cannot be profiled, returns NULL, with the reason in
 * *ret.
 */
struct instance *adopt_for_recording(struct targets *ts, const struct peer *peer, int32_t pid,
				     struct control_answer *ret);

/*
 * To be called after a reload: removes the instances that users have added, if user_attach no
 * longer permits them.
 */
void adopt_config_changed(struct targets *ts);

#endif
