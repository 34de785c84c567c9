/*
 * sentry-profctl attach and detach: processes that a user adds and removes by pid,
 * independent of the configuration; and the processes of recordings.
 */
#ifndef DAEMON_BROKER_CONTROL_ADOPT_H
#define DAEMON_BROKER_CONTROL_ADOPT_H

#include <stdint.h>

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct targets;

/* How many processes a user who is no operator may have attached at a time. */
#define ADOPT_USER_MAX 8

/* Profiles the process from now on, whatever the configuration says of it. */
void adopt_attach(struct targets *ts, const struct peer *is, int32_t pid,
		  struct control_answer *ret);
/* Stops profiling the process, until its end or another attach. */
void adopt_detach(struct targets *ts, const struct peer *is, int32_t pid,
		  struct control_answer *ret);

/*
 * Returns the instance for a recording of the process: the one that there is, or a new one,
 * which is removed with its last recording. NULL if is may not record it, or it cannot be
 * recorded: *ret says why.
 */
struct instance *adopt_for_record(struct targets *ts, const struct peer *is, int32_t pid,
				  struct control_answer *ret);

#endif
