/*
 * Processes that are taken on, or left alone, by name and not by a section of
 * the configuration: sentry-profctl attach and detach.
 */
#ifndef DAEMON_BROKER_CONTROL_ADOPT_H
#define DAEMON_BROKER_CONTROL_ADOPT_H

#include <stdint.h>

#include "daemon/broker/control/control.h"

#include "daemon/process/peer.h"

struct targets;

/* Of each user who may not operate the daemon, at a time. */
#define ADOPT_USER_MAX 8

/* Profile it from now on, whatever is configured. */
void adopt_attach(struct targets *ts, const struct peer *is, int32_t pid,
		  struct control_answer *ret);
/* Let go of it and leave it alone, until its end or another attach. */
void adopt_detach(struct targets *ts, const struct peer *is, int32_t pid,
		  struct control_answer *ret);

/*
 * The process for a recording: the instance that it is, or a new one that goes
 * with its last recording. NULL: *ret says why not.
 */
struct instance *adopt_for_record(struct targets *ts, const struct peer *is, int32_t pid,
				  struct control_answer *ret);

#endif
