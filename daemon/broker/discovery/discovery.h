/*
 * Discovery: finds the processes that sections of the configuration match, and adds them as
 * instances (targets/instances.h).
 *
 * The kernel reports new processes and programs by its proc connector (connector.h). Where that is
 * unavailable, discovery reads /proc once a second. It reads the configuration's pid files once a
 * second in either case.
 *
 * A process is checked when it, or its program, is as old as the smallest min_age_seconds of all
 * sections. A process that ends sooner costs an entry in the recheck queue. discovery keeps nothing
 * of a process that no section matches. Only without the connector it keeps some bytes of each
 * process in the scan cache.
 *
 * The kernel does not report changes of the command line or the control group. If only these facts
 * keep a process from matching, it is checked again when it is twice as old, and so on for its
 * first minute, in which most such changes happen. Once a minute a scan of /proc checks all
 * processes.
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

/* Returns true if the proc connector is open. */
bool discovery_has_connector(const struct discovery *d);
/* Returns the sections with their counts of matched processes, which are updated once a second. */
const struct sections *discovery_sections(const struct discovery *d);
/* Passes an instance that is about to be freed to sections_instance_gone(). d may be NULL. */
void discovery_instance_gone(struct discovery *d, const struct instance *i);

/*
 * Starts discovery. Call it when the event loop exists, and before discovery_check() and the other
 * functions below. Returns 0 or -ENOMEM.
 */
must_check int discovery_start(struct discovery *d);

/* To be called when the configuration has changed: all processes are checked again. */
void discovery_config_changed(struct discovery *d);

/* Checks again whether the section of the instance of pid still matches it. */
void discovery_recheck(struct discovery *d, int32_t pid);

/*
 * Reads the events of the kernel and checks the processes that are due, every DISCOVERY_MS, and
 * sooner if work is left. Called at every turn. It has no work in most turns, because a new process
 * causes some ten turns by its messages.
 */
#define DISCOVERY_MS 100
void discovery_check(struct discovery *d);

/* Returns for how many milliseconds the next turn may wait for events; 0: work is left. */
uint64_t discovery_wait_ms(const struct discovery *d);

/* Returns the processor time of discovery's helpers (files/files.h), in ns. */
uint64_t discovery_used_ns(const struct discovery *d);

/* Passes the end of a process, perhaps a helper of discovery, to files_reaped(). */
void discovery_reaped(struct discovery *d, int32_t pid, const struct rusage *usage);

/*
 * Returns the struct files that reads command lines and pid files; NULL before
 * discovery_start().
 */
struct files *discovery_files(const struct discovery *d);
/*
 * Returns the process that a pid file of the configuration names (pid_files_pid()); 0: none, not
 * read yet, or no such file.
 */
int32_t discovery_pid_file(const struct discovery *d, const char *path);

#endif
