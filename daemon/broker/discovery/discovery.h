/*
 * Discovery: finds the processes that sections of the configuration match, and adds them as
 * instances (targets/instances.h).
 *
 * The kernel reports new processes and programs by its proc connector (connector.h). Until the
 * connector has answered, and where there is none, discovery reads /proc once a second. The
 * configuration's pid files are read once a second in either case.
 *
 * A new process has an entry in rechecks.h until it is as old as the smallest min_age_seconds of
 * all sections, and then is checked: does a section match it? If the section has a larger
 * min_age_seconds, the process is checked again at that age. A process that ends sooner costs only
 * the entry. Discovery keeps nothing of a process that no section matches, except, without the
 * connector, some bytes in the scan cache (scan_cache.h).
 *
 * The kernel does not report changes of the command line or the control group. If only such a
 * change could make a process match, discovery checks the process again when it is twice as old,
 * and so on, until a check finds it a minute old: at 1, 2, 4, ... 64 s, for example. Once a minute
 * a scan of /proc checks all processes.
 */
#ifndef DAEMON_BROKER_DISCOVERY_DISCOVERY_H
#define DAEMON_BROKER_DISCOVERY_DISCOVERY_H

#include <stdbool.h>
#include <sys/resource.h>

#include "lib/base/util.h"

struct discovery;
struct instance;
struct sections;
struct targets;

/*
 * Makes *ret and opens the proc connector. Call it while the process still has CAP_NET_ADMIN. A
 * connector that cannot be opened is no error. Returns 0 or -ENOMEM.
 */
must_check int discovery_new(struct targets *ts, struct discovery **ret);
/* d may be NULL. */
void discovery_free(struct discovery *d);

/* Returns true if the proc connector is open. Perhaps no events come by it (connector.h). */
bool discovery_has_connector(const struct discovery *d);
/* Returns the sections with their counts of matched processes, which are updated once a second. */
const struct sections *discovery_sections(const struct discovery *d);
/* Call it before i is freed: adds the totals of i to those of its section. d may be NULL. */
void discovery_instance_gone(struct discovery *d, const struct instance *i);

/*
 * Starts discovery. Call it when the event loop exists, and before the functions below, except
 * discovery_reaped() and discovery_files(). Returns 0 or -ENOMEM.
 */
must_check int discovery_start(struct discovery *d);

/* To be called when the configuration has changed: all processes are checked again. */
void discovery_config_changed(struct discovery *d);

/* Queues a check of process pid. For an instance: whether its section still matches the process. */
void discovery_recheck(struct discovery *d, int32_t pid);

/*
 * To be called at every turn. Once in DISCOVERY_MS, or sooner if work was left, reads the events of
 * the kernel and checks the processes that are due, at most a few hundred a call (some 10 ms).
 * Each call also calls files_check() for discovery's helper.
 */
#define DISCOVERY_MS 100
void discovery_check(struct discovery *d);

/* Returns for how many milliseconds the next turn may wait for events; 0: work is left. */
uint64_t discovery_wait_ms(const struct discovery *d);

/* Returns the processor time of discovery's helpers (files/files.h), in ns. */
uint64_t discovery_used_ns(const struct discovery *d);

/* Call it when pid, perhaps a helper of discovery, has ended: as files_reaped() (files/files.h). */
void discovery_reaped(struct discovery *d, int32_t pid, const struct rusage *usage);

/*
 * Returns the struct files that reads command lines and pid files; NULL before
 * discovery_start().
 */
struct files *discovery_files(const struct discovery *d);
/*
 * Returns the process that the pid file at path names. 0: the file names none, is not read yet, or
 * is not in the configuration.
 */
int32_t discovery_pid_file(const struct discovery *d, const char *path);

#endif
