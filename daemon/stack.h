/*
 * sentry-profctl stack: the stacks of a living process's threads on stdout, as
 * this project unwinds them; beside those of an oracle if that is wanted.
 */
#ifndef DAEMON_STACK_H
#define DAEMON_STACK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/oracle.h"
#include "lib/base/util.h"

struct stack_options {
	int32_t pid;
	bool oracles[ORACLE_N]; /* none: threads are hardly stopped */
};

struct stack_outcome {
	unsigned int threads; /* whose stacks were printed */
	unsigned int differ;  /* stacks that an oracle sees otherwise */
};

/*
 * Prints them. Without an oracle a thread that is blocked in a call is not
 * stopped unless its stack cannot be had otherwise, and one that runs only
 * while its stack is copied; with one, while that unwinds.
 *
 * Returns 0 if some thread could be looked at; else -ESRCH (no such process),
 * -EPERM, -ENOEXEC (a 32-bit one), -ETIMEDOUT, -ENOMEM.
 */
must_check int stack_print(const struct stack_options *options,
			   struct stack_outcome *ret);

#endif
