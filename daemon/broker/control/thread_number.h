/*
 * Threads of processes in another pid namespace (a container): the numbers that
 * they know themselves by, and ours (NSpid of proc(5)'s status).
 */
#ifndef DAEMON_BROKER_CONTROL_THREAD_NUMBER_H
#define DAEMON_BROKER_CONTROL_THREAD_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Are the process's own numbers other than ours? */
bool thread_number_differs(int32_t pid);

/*
 * Our number of the thread of pid that calls itself own. Looks at no more than
 * THREAD_NUMBER_LOOKS_MAX threads. Returns 0, or -ESRCH: none of these is.
 */
#define THREAD_NUMBER_LOOKS_MAX 1024
must_check int thread_number_find(int32_t pid, int32_t own, int32_t *ret);

#endif
