/*
 * Finds the section of the configuration that matches a process. Discovery asks this module about
 * each new or changed process. The module reads only what the rules of the sections need, the
 * cheapest facts first (daemon/config/match.h).
 *
 * All facts are text of bounded length from untrusted processes; they are compared and not kept. A
 * command line and an environment lie in the memory of the process, so that reading them may hang.
 * Therefore a helper (daemon/broker/files/files.h) reads both, and the answer comes later.
 *
 * A process with SENTRY_PROFILER=off in its environment declines to be profiled
 * (process_facts_decline()). So if all rules of a section match, this module reads the environment
 * as the last fact. If the process declines, the answer is IDENTIFY_NONE.
 */
#ifndef DAEMON_BROKER_DISCOVERY_IDENTIFY_H
#define DAEMON_BROKER_DISCOVERY_IDENTIFY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/discovery/pid_files.h"
#include "daemon/broker/discovery/rechecks.h"
#include "daemon/broker/files/files.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"

struct identify;

/* No section matches, or the process declines to be profiled. */
#define IDENTIFY_NONE SIZE_MAX
/* No section matches, but one could after a change that no event reports (match_could_change). */
#define IDENTIFY_NOT_YET (SIZE_MAX - 1)
/* No answer, because memory or descriptors are short, or the process is ending: ask again later. */
#define IDENTIFY_LATER (SIZE_MAX - 2)

/*
 * Receives the answer. section is the index, in the configuration, of the first section that
 * matches, or IDENTIFY_NONE, IDENTIFY_NOT_YET or IDENTIFY_LATER. s and process are copies of the
 * arguments of identify(), valid during the call of this function. Its caller then closes the pidfd
 * of process, unless this function has taken it with process_take_pidfd().
 */
typedef void (*identify_fn)(void *ctx, const struct recheck *s, struct process *process,
			    size_t section);

/*
 * Makes an identify that calls fn with ctx for each answer. Call identify_configure() before
 * identify_excludes() and identify(). files should serve discovery only, so that a process that
 * hangs a helper delays no other files. pid_files may be NULL if no section has a pid_file. files
 * may be NULL if no section has a rule on the command line or the environment; then
 * SENTRY_PROFILER=off has no effect. Both must outlive *ret. Returns 0 or -ENOMEM.
 */
must_check int identify_new(struct files *files, const struct pid_files *pid_files, identify_fn fn,
			    void *ctx, struct identify **ret);
/*
 * Frees id. The calls of identify() that have no answer yet get none. Call files_free() before,
 * because the requests in files refer to these calls. id may be NULL.
 */
void identify_free(struct identify *id);

/*
 * Sets the configuration, which must stay valid until the next call. The calls of identify() that
 * have no answer yet are answered by the new configuration.
 */
void identify_configure(struct identify *id, const struct config *config);

/*
 * Returns true if the executable of process pid alone shows that no section matches. Costs one
 * readlink(2). If any section has no exe, returns false without the readlink(2). A cheap test
 * before identify(), since it excludes most new processes.
 */
bool identify_excludes(const struct identify *id, int32_t pid);

/* Returns true if identify() may be called: fewer than 64 of its calls have no answer yet. */
bool identify_has_room(const struct identify *id);

/*
 * Asks which section matches process, which process_look() has just filled. Call it only if
 * identify_has_room(). s is the caller's entry for the process (rechecks.h). This module does
 * not read s, but passes a copy to fn. The answer is a call of fn, perhaps before this function
 * returns. Returns 0 or -ENOMEM. After 0 the pidfd of process is -1, because this module has taken
 * it. After -ENOMEM process keeps its pidfd, and fn is not called.
 */
must_check int identify(struct identify *id, const struct recheck *s, struct process *process);

/*
 * Read the target of /proc/PID/exe, and the path of the control group. *ret is "" if that cannot be
 * read.
 */
void identify_read_exe(int32_t pid, char ret[PATH_MAX]);
void identify_read_cgroup(int32_t pid, char ret[PATH_MAX]);

#endif
