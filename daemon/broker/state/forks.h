/*
 * The child processes that the broker has forked and not reaped yet.
 *
 * The broker can have other children, which are no part of sentry-profd: those that the process
 * had before it executed sentry-profd ("server & exec sentry-profd" in the script of a container),
 * and, if it is process 1, all orphans.
 */
#ifndef DAEMON_BROKER_STATE_FORKS_H
#define DAEMON_BROKER_STATE_FORKS_H

#include <stdbool.h>
#include <stdint.h>

/* To be called after fork(2). Without memory the process counts as not forked by the broker. */
void forks_add(int32_t pid);
/* Returns true if the broker has forked the process and not reaped it yet. */
bool forks_have(int32_t pid);
/* To be called after wait(2). Returns true if the broker had forked the process. */
bool forks_remove(int32_t pid);

#endif
