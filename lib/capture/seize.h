/*
 * PTRACE_SEIZE with a time limit, for attach.c. PTRACE_SEIZE waits while a thread of the process is
 * in execve(2). That thread waits until the other threads are dead and reaped by their tracer,
 * which is the caller. Without a limit both could wait for ever.
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

/*
 * Call seize_begin() before a series of seize_thread(), and seize_end() after it. Between them the
 * module owns SIGALRM and ITIMER_REAL; all other threads must block SIGALRM.
 */
void seize_begin(struct seize *ret);
void seize_end(const struct seize *s);

/*
 * Seizes a thread with these PTRACE_O_ options. Returns 0 or -errno of ptrace(2). -EINTR: the limit
 * of 2 ms was reached. The thread may be seized nevertheless; TracerPid in /proc shows whether it
 * is.
 */
must_check int seize_thread(uint32_t tid, unsigned long options);

#endif
