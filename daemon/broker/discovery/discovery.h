/*
 * Discovery: finds the processes that sections of the configuration match.
 *
 * The kernel announces new processes and programs by its proc connector
 * (connector.h); where that is not to be had, discovery reads /proc once a second. It
 * reads the configuration's pid files once a second in either case.
 *
 * A process is looked at when it, or its program, is as old as the least
 * min_age_seconds of all sections: those that end sooner cost a word in a list,
 * and nothing is ever kept of those that match nothing, but where there is no
 * connector a few bytes as long as they live.
 *
 * Nobody tells of another command line or control group. Who would be a
 * section's with these is looked at again when it is twice as old, and so on,
 * for its first minute, when most of what a process makes of itself is made;
 * and with all others once a minute, when /proc is read.
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
 * Prepares it, with the privileges that it takes to listen to the kernel.
 * Returns 0 or -ENOMEM.
 */
must_check int discovery_new(struct targets *ts, struct discovery **ret);
/* Takes NULL. */
void discovery_free(struct discovery *d);

/* Is there a connector to hear of new processes by? */
bool discovery_has_connector(const struct discovery *d);
/* What its sections have matched, as of the last second. */
const struct sections *discovery_sections(const struct discovery *d);
/* An instance is about to be freed: see sections_gone. Takes NULL for d. */
void discovery_gone(struct discovery *d, const struct instance *i);

/* When there is a loop. Returns 0 or an error of files_new. */
must_check int discovery_start(struct discovery *d);

/* The configuration is another one: all processes are looked at anew. */
void discovery_by_config(struct discovery *d);

/* An instance of which it is not sure that its section matches it still. */
void discovery_doubt(struct discovery *d, int32_t pid);

/*
 * At every turn. Reads what the kernel tells, and looks at what is due, every
 * DISCOVERY_MS: a process that starts makes some ten turns by its messages.
 */
#define DISCOVERY_MS 100
void discovery_check(struct discovery *d);

/* How long the next turn may wait; 0: more is due already. */
uint64_t discovery_wait_ms(const struct discovery *d);

/* Processor time of its helpers, in ns. */
uint64_t discovery_used_ns(const struct discovery *d);

/* A child of ours that nobody else knows has ended: files_reaped. */
void discovery_reaped(struct discovery *d, int32_t pid, const struct rusage *usage);

/* What reads command lines and pid files; NULL before discovery_start. */
struct files *discovery_files(const struct discovery *d);
/* Which process a pid file of the configuration names (pid_files_pid). */
int32_t discovery_pid_file(const struct discovery *d, const char *path);

#endif
