/*
 * Keeps the runs of processes apart whose rights change. A run belongs to an owner
 * (daemon/process/owner.h): its samples and files go to the unwind process of that owner's key. A
 * process that executes a set-user-ID program, or takes another user's ids, gets another key, which
 * ends the run. The next run, with the new key, begins at once, and then at most once in
 * OWNER_RUN_NS. A process that a user who is no operator has attached or recorded is left: this
 * user may not profile it any more.
 *
 * The broker reads the key at each request of unwind, after each attach and exec, and before each
 * run. Once a second it compares the owners of /proc/PID and /proc/PID/stat, and reads the key if
 * they differ; it reads the key of mixed targets every second. If the kernel reports a change of
 * ids (discovery/connector.h), the broker reads the key within some 100 ms, at most ten times a
 * second for a process; no protection depends on these reports. Until a change is seen, capture
 * compares the owner of the process's files in /proc at each exec, and the helper of files/
 * compares the whole key at each file.
 */
#ifndef DAEMON_BROKER_TARGETS_OWNERS_H
#define DAEMON_BROKER_TARGETS_OWNERS_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

#define OWNER_RUN_NS (10 * NS_PER_SEC)

/*
 * Reads whose the process of t is, and ends the run if the key has changed. Returns 0; -EACCES:
 * the key has changed, now or earlier in this run; -ESRCH: the process has ended; or an error of a
 * shortage.
 */
must_check int owners_check(struct targets *ts, struct target *t);

/* Ends the run as if the key had changed. */
void owners_end_run(struct targets *ts, struct target *t);

/*
 * Reads whose the process of i, which has no run, is. Returns 0; -EACCES: it is left, as above;
 * -ESRCH; or an error of a shortage.
 */
must_check int owners_look(struct targets *ts, struct instance *i);

/*
 * The same for a run that is about to begin. Returns -EAGAIN, too: the last run ended by a change
 * of the key, and the next one has to wait.
 */
must_check int owners_begin(struct targets *ts, struct instance *i);

/* To be called once a second: looks at all targets. */
void owners_check_all(struct targets *ts);

#endif
