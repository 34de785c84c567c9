/*
 * PTRACE_SEIZE with a time limit. PTRACE_SEIZE waits while a thread of the process is in execve(2).
 * That thread waits until the other threads are dead and reaped by their tracer. Without a limit
 * both could wait for ever. Between seize_begin and seize_end the module uses SIGALRM and
 * ITIMER_REAL of the calling thread.
 */
#ifndef LIB_CAPTURE_SEIZE_H
#define LIB_CAPTURE_SEIZE_H

#include <signal.h>
#include <stdint.h>

#include "lib/base/util.h"

/* The signal handler and mask that seize_begin() has replaced, for seize_end(). */
struct seize {
	struct sigaction action;
	sigset_t mask;
};

void seize_begin(struct seize *ret);
void seize_end(const struct seize *s);

/*
 * Seizes a thread with these ptrace options. Returns 0 or -errno of ptrace(2). -EINTR: the limit of
 * 2 ms was reached. The call may have succeeded at that moment; TracerPid in /proc shows whether it
 * has.
 */
must_check int seize_thread(uint32_t tid, unsigned long options);

#endif
