/*
 * Translates thread ids of processes in another pid namespace, such as a container. A thread has
 * one id in its own namespace and another one in the broker's (NSpid in /proc/PID/status, proc(5)).
 * Used for the request PROTOCOL_THREAD, in which a client sends the id that a thread has in the
 * client's namespace.
 */
#ifndef DAEMON_BROKER_CONTROL_NAMESPACED_TID_H
#define DAEMON_BROKER_CONTROL_NAMESPACED_TID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Returns true if process pid is in another pid namespace than the broker, so that its threads have
 * other ids there. Returns false also if the process has ended.
 */
bool namespaced_tid_is_other(int32_t pid);

/*
 * Finds the thread of process pid whose id in the pid namespace of that process is own, among the
 * first NAMESPACED_TID_LOOKS_MAX threads, and sets *ret to the broker's id of the thread. Sets
 * *ret_looks to the number of files that were read, also after an error: a dozen at most if the
 * ids of the threads ascend in both namespaces, or the process has more threads; else one for each
 * thread in addition. Returns 0, or -ESRCH if the process has ended, its threads cannot be listed,
 * or none of these threads has the id own.
 */
#define NAMESPACED_TID_LOOKS_MAX 1024
must_check int namespaced_tid_find(int32_t pid, int32_t own, int32_t *ret, size_t *ret_looks);

#endif
