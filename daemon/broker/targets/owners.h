/*
 * Ends the run of a process whose rights change. A run (run.h) belongs to an owner
 * (daemon/process/owner.h): the unwind process of that owner's key gets the samples and files of
 * the run. A process that executes a set-user-ID program, or takes another user's ids, gets another
 * key, and the run ends. The next run, with the new key, begins at once, and continues the profile
 * (struct profile_start). But if the key changes again and again, runs that follow a change begin
 * at least OWNER_RUN_NS apart.
 *
 * If a user who is no operator has attached or recorded the process, a change of the key ends this
 * request, since the user may not profile the process any more. An instance that exists only by the
 * request is removed; another one (of a section, --pid or --children) becomes INSTANCE_CHANGED, and
 * its configuration decides again. An instance without such a request stays as it is.
 *
 * The broker reads the key of a process:
 * - at each request of unwind for a file, after each attach and exec, before each run, and when a
 *   peer asks to attach or record a process that has no run;
 * - if the owner of /proc/PID, or of the files in it, has changed: checked once a second;
 * - every second, if the owner is mixed;
 * - within some 100 ms after the kernel has reported a change of ids (discovery/connector.h), at
 *   most ten times a second for a process. No protection depends on these reports.
 *
 * Until the broker sees a change, two checks protect the process. At each exec capture compares the
 * owner of the process's files in /proc with the former owner. The helper that opens the process's
 * files (files/) compares the whole key with that of the run before it opens each file.
 */
#ifndef DAEMON_BROKER_TARGETS_OWNERS_H
#define DAEMON_BROKER_TARGETS_OWNERS_H

#include <stdint.h>

#include "daemon/broker/targets/targets.h"
#include "lib/base/util.h"

/* The least time between the begins of two runs that follow a change of the key. */
#define OWNER_RUN_NS (10 * NS_PER_SEC)

/*
 * Reads the owner of the process of run, and ends the run if the key has changed. Returns 0;
 * -EACCES if the key has changed, now or earlier in this run; -ESRCH if the process has ended; or
 * an error of a shortage (daemon/common/resource_shortage.h).
 */
must_check int owners_check(struct targets *ts, struct run *run);

/*
 * Ends the run as if the key had changed, and reads the owner, so that this change counts once.
 * Call it when capture has seen that the process has other rights (TARGET_OTHER_RIGHTS).
 */
void owners_end_run(struct targets *ts, struct run *run);

/*
 * Reads the owner of the process of i; i must have no run. Returns 0, also after a change of the
 * key; -EACCES if i is gone (instance_is_gone), because of the change or before; -ESRCH if the
 * process has ended; or an error of a shortage.
 */
must_check int owners_look(struct targets *ts, struct instance *i);

/*
 * Call it just before a run of i begins: the run may begin only if the result is 0. Returns as
 * owners_look(), or -EAGAIN if the key has changed and the last run that followed a change began
 * less than OWNER_RUN_NS ago: the caller tries again at a later turn. Also returns -EACCES if i has
 * become INSTANCE_CHANGED by the change.
 */
must_check int owners_begin(struct targets *ts, struct instance *i);

/*
 * To be called once a second: calls owners_check() for each open run whose owner is mixed, or for
 * which the owner of /proc/PID or of its files has changed.
 */
void owners_check_all(struct targets *ts);

#endif
