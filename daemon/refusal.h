/*
 * The lines that say why a process cannot be profiled, and what to do.
 */
#ifndef DAEMON_REFUSAL_H
#define DAEMON_REFUSAL_H

#include "daemon/process.h"

/* What process_look says of pid. Returns 0 with PROCESS_OK, else an errno. */
must_check int refusal_of_look(enum process_fault fault, int32_t pid,
			       const struct process *p);

/* capture cannot attach to pid, which runs as uid: error, an errno, is why. */
void refusal_of_attach(int32_t pid, uint32_t uid, int error);

/* It was profiled, and tracer (0: not known) has it now: not an error. */
void refusal_for_now(int32_t pid, int32_t tracer);

#endif
