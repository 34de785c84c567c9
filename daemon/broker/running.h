/*
 * The processes that run now and that --name, --unit or --container describe,
 * by the rules of the configuration's sections (daemon/config/match.h): looked for
 * once, at the start. Those that start later are for a configuration.
 */
#ifndef DAEMON_BROKER_RUNNING_H
#define DAEMON_BROKER_RUNNING_H

#include "daemon/broker/state/options.h"
#include "lib/base/util.h"

/*
 * Adds them to o->pids; each process once. Left out are this process, and to an
 * ordinary user the processes of others, which he may not profile. Returns 0,
 * or after a line: -ESRCH, if there is none, or an error.
 */
must_check int running_find(struct options *o);

#endif
