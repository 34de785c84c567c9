/*
 * Finds the running processes that --name, --unit or --container describe, by the rules of the
 * configuration's sections (daemon/config/match.h). The broker does so once, at the start. Only
 * discovery, which takes a configuration, finds processes that start later.
 */
#ifndef DAEMON_BROKER_DISCOVERY_STARTUP_MATCH_H
#define DAEMON_BROKER_DISCOVERY_STARTUP_MATCH_H

#include "daemon/broker/state/options.h"
#include "lib/base/util.h"

/*
 * Adds the processes that o->rules match to o->pids, each once. Skips this process and, for an
 * ordinary user, the processes of other users. Logs a warning if more processes match than o->pids
 * has places for. Returns 0, also if o has no rules; or, after a log line, -ESRCH if no process
 * matches, or another negative errno.
 */
must_check int startup_match_find(struct options *o);

#endif
