/*
 * Finds the running processes that --name, --unit or --container describe. Each of these options is
 * a rule, as in a section of the configuration (daemon/config/match.h). The broker looks once, at
 * its start: processes that start later are not found.
 */
#ifndef DAEMON_BROKER_DISCOVERY_STARTUP_MATCH_H
#define DAEMON_BROKER_DISCOVERY_STARTUP_MATCH_H

#include "daemon/broker/state/options.h"
#include "lib/base/util.h"

/*
 * Adds each process that at least one of o->rules matches to o->pids, unless o->pids has it
 * already. Skips sentry-profd itself and, if sentry-profd does not run as root, the processes of
 * other users. Logs a warning if processes of other users match, and one if o->pids is full, each
 * with the number of processes that are left out. Returns 0, also if o has no rules; or, after a
 * log line, -ESRCH if only skipped processes or none match, or another negative errno.
 */
must_check int startup_match_find(struct options *o);

#endif
