/*
 * The command `sentry-profctl healthy`, for probes: systemd, Docker's HEALTHCHECK, Kubernetes.
 *
 * The daemon is healthy if it answers, its capture runs, and it lacks nothing that a promise of
 * docs/SAFETY.md or docs/SECURITY.md needs. Not judged: what a server does, what a user of the
 * machine can cause (a file at which unwind dies, a process that cannot be profiled), and what only
 * makes profiles poorer. status and the metrics have these.
 */
#ifndef DAEMON_CTL_HEALTHY_H
#define DAEMON_CTL_HEALTHY_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the text of a fault, the NUL included. Longer texts are cut. */
#define HEALTHY_FAULT_SIZE 512

/*
 * Judges json, a status of the daemon. Returns true if the daemon is healthy, with an empty text;
 * else false, with the gravest fault. What the daemon lacks is null for a user who may not see it,
 * and then no fault.
 */
bool healthy_judge(const char *json, size_t size, char ret_fault[HEALTHY_FAULT_SIZE]);

/*
 * Runs the command; argv[0] is its name. Returns the exit status: EXIT_SUCCESS without output,
 * EXIT_FAILURE after a line on stderr, or 2 for wrong usage.
 */
int healthy_run(int argc, char **argv);

/* The part of --help-all about this command. */
extern const char healthy_help[];

#endif
