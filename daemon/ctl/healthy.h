/*
 * The command `sentry-profctl healthy`: says by its exit status whether the daemon is healthy. For
 * probes of systemd, Docker (HEALTHCHECK) and Kubernetes.
 *
 * The daemon is healthy if it answers, its capture runs, and it keeps the promises of
 * docs/SAFETY.md and docs/SECURITY.md. Three kinds of faults do not count: faults of a Sentry
 * server, faults that a user of the machine can cause (such as a file at which unwind dies), and
 * faults that only make profiles poorer. `status` and the metrics report these.
 */
#ifndef DAEMON_CTL_HEALTHY_H
#define DAEMON_CTL_HEALTHY_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of a text, the NUL included. Longer texts are cut. */
#define HEALTHY_TEXT_SIZE 512

/*
 * Judges json, the status that the daemon sends, of size bytes. Returns true if the daemon is
 * healthy. Returns false and the text of one fault if it is not, or if json is not a status.
 *
 * If the daemon is healthy, the text is empty, with one exception. The status has a list of
 * degraded states: what the daemon lacks, with the effect. A user without the right to see them
 * gets null in place of the list. The text then says so, for a warning.
 */
bool healthy_judge(const char *json, size_t size, char ret_text[HEALTHY_TEXT_SIZE]);

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS without output if
 * the daemon is healthy (with a warning if the user may not see the degraded states), EXIT_FAILURE
 * after a line on stderr if not, or 2 for wrong usage.
 */
int healthy_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char healthy_help[];

#endif
