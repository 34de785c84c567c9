/*
 * sentry-profctl stack: the stacks of a living process's threads on stdout, as
 * this project unwinds them.
 */
#ifndef DAEMON_STACK_H
#define DAEMON_STACK_H

#include <stdint.h>

#include "lib/base/util.h"

/*
 * Prints them. A thread that is blocked in a call is not stopped unless its
 * stack cannot be had otherwise, and one that runs only while its stack is
 * copied.
 *
 * Returns 0 if some thread could be looked at; else -ESRCH (no such process),
 * -EPERM, -ENOEXEC (a 32-bit one), -ETIMEDOUT, -ENOMEM.
 */
must_check int stack_print(int32_t pid);

#endif
