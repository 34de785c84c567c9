/*
 * Which section of the configuration is a process one of? Reads what the
 * sections ask for, the cheapest first, and nothing that decides nothing.
 *
 * All of it is a stranger's text of bounded length, which is compared and
 * forgotten (daemon/config/match.h). A command line lies in the process's own memory,
 * so that reading it may hang: daemon/broker/files/files.h does that, and the answer comes
 * later.
 */
#ifndef DAEMON_BROKER_DISCOVERY_IDENTIFY_H
#define DAEMON_BROKER_DISCOVERY_IDENTIFY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/discovery/pid_files.h"
#include "daemon/broker/discovery/recheck_queue.h"
#include "daemon/broker/files/files.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"

struct identify;

#define IDENTIFY_NONE SIZE_MAX
/* None, but for what may change without a word (match_may_become). */
#define IDENTIFY_NOT_YET (SIZE_MAX - 1)
/* Unknown for lack of memory or descriptors: ask again later. */
#define IDENTIFY_LATER (SIZE_MAX - 2)

/*
 * The answer: the section's place in the configuration, the first that matches,
 * or one of these. The pidfd is closed after the call, unless the callee takes
 * it (process_take_pidfd).
 */
typedef void (*identify_fn)(void *ctx, const struct recheck *s, struct process *process,
			    size_t section);

/* files: a struct of its own, so that nobody else waits for strangers. */
must_check int identify_new(struct files *files, const struct pid_files *pid_files, identify_fn fn,
			    void *ctx, struct identify **ret);
/*
 * Takes NULL. Drops what waits for a command line, of which files must have
 * dropped the requests before (files_free).
 */
void identify_free(struct identify *id);

/*
 * The configuration of now, which has to stay until the next. An answer is by
 * this one, also to what was asked before.
 */
void identify_by(struct identify *id, const struct config *config);

/*
 * True if no section can match process pid, as its executable alone says: one
 * readlink(2), and none where a section has no exe. Most births are strangers,
 * for which nothing more is read.
 */
bool identify_excludes(const struct identify *id, int32_t pid);

/* False: as many processes as can wait for their command lines do. */
bool identify_has_room(const struct identify *id);

/*
 * Asks about a process that has been looked at just now. To be called where
 * there is room. The answer may come within the call; if it comes later, the
 * pidfd is taken out of process. Returns 0 or -ENOMEM.
 */
must_check int identify(struct identify *id, const struct recheck *s, struct process *process);

/* A process's link exe, and its cgroup; "" where it cannot be read. */
void identify_read_exe(int32_t pid, char ret[PATH_MAX]);
void identify_read_cgroup(int32_t pid, char ret[PATH_MAX]);

#endif
