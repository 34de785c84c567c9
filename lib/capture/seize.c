#include "lib/capture/seize.h"

#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/time.h>

/*
 * The time limit. An execve(2) that is not held up itself keeps a tracer from attaching for less
 * than a millisecond.
 */
#define SEIZE_WAIT_US 2000

/*
 * A signal interrupts PTRACE_SEIZE, but the kernel resumes the wait when the handler returns
 * (-ERESTARTNOINTR of ptrace_attach, kernel/ptrace.c). So the handler does not return, but jumps
 * back to seize_thread.
 */
static sigjmp_buf waited_enough;
/* waited_enough is set. A signal at another time, from another process, is ignored. */
static volatile sig_atomic_t is_waiting;

static void on_alarm(int signal)
{
	(void)signal;
	if (is_waiting)
		siglongjmp(waited_enough, 1);
}

void seize_begin(struct seize *ret)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	sigset_t set;

	(void)sigaction(SIGALRM, &action, &ret->action);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	(void)sigprocmask(SIG_UNBLOCK, &set, &ret->mask);
}

void seize_end(const struct seize *s)
{
	(void)sigprocmask(SIG_SETMASK, &s->mask, NULL);
	(void)sigaction(SIGALRM, &s->action, NULL);
}

/* The handler jumps only out of these three system calls, where nothing is left half done. */
int seize_thread(uint32_t tid, unsigned long options)
{
	const struct itimerval wait = {.it_value.tv_usec = SEIZE_WAIT_US};
	const struct itimerval never = {.it_value.tv_usec = 0};
	int r;

	if (sigsetjmp(waited_enough, 1) != 0) {
		is_waiting = false;
		return -EINTR;
	}
	is_waiting = true;
	(void)setitimer(ITIMER_REAL, &wait, NULL);
	r = ptrace(PTRACE_SEIZE, tid, NULL, options) == 0 ? 0 : -errno;
	(void)setitimer(ITIMER_REAL, &never, NULL);
	is_waiting = false;
	return r;
}
