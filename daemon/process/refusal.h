/*
 * The lines that say why a process cannot be profiled, and what to do.
 */
#ifndef DAEMON_PROCESS_REFUSAL_H
#define DAEMON_PROCESS_REFUSAL_H

#include <stdbool.h>

#include "daemon/process/process.h"

/* What process_look says of pid. Returns 0 with PROCESS_OK, else an errno. */
must_check int refusal_log_look(enum process_fault fault, int32_t pid, const struct process *p);

/* capture cannot attach to pid, which runs as uid: error, an errno, is why. */
void refusal_log_attach(int32_t pid, uint32_t uid, int error);

/* It has ended while it waited for that. */
void refusal_log_ended(int32_t pid);

/* We have come to our end, and it still waited: traced by another, or not. */
void refusal_log_not_profiled(int32_t pid, bool traced);

/*
 * So many of its threads are not attached: error is EMFILE or ENFILE. Of other
 * errors nothing is said, and false returned.
 */
bool refusal_log_threads(int32_t pid, uint64_t n, int error);

/* It was profiled, and tracer (0: not known) has it now: not an error. */
void refusal_log_traced_now(int32_t pid, int32_t tracer);

#endif
