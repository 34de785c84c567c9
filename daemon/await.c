#include "daemon/await.h"

#include <assert.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"

static sigjmp_buf out;
static volatile sig_atomic_t waiting;

/* The mask is not touched, so there is none to be restored. */
static void on_ring(int signal)
{
	(void)signal;
	if (!waiting)
		return;
	waiting = 0;
	siglongjmp(out, 1);
}

void await_init(struct await *a)
{
	const struct sigaction action = {.sa_handler = on_ring,
					 .sa_flags = SA_RESTART | SA_NODEFER};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
				 .sigev_signo = AWAIT_SIGNAL};

	*a = (struct await){0};
	a->made = sigaction(AWAIT_SIGNAL, &action, NULL) == 0 &&
		  timer_create(CLOCK_MONOTONIC, &event, &a->timer) == 0;
}

void await_fini(struct await *a)
{
	if (a->made)
		(void)timer_delete(a->timer);
	*a = (struct await){0};
}

void await_enter(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, AWAIT_SIGNAL);
	(void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static struct timespec as_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
				 .tv_nsec = (long)(ns % NS_PER_SEC)};
}

void await_ring(struct await *a, uint64_t first_ns, uint64_t period_ns)
{
	const struct itimerspec times = {
		.it_value = as_timespec(first_ns),
		.it_interval = as_timespec(period_ns),
	};

	if (a->made)
		a->rings = timer_settime(a->timer, TIMER_ABSTIME, &times,
					 NULL) == 0;
}

void await_rest(struct await *a)
{
	const struct itimerspec never = {.it_value.tv_sec = 0};

	if (a->rings)
		(void)timer_settime(a->timer, 0, &never, NULL);
	a->rings = false;
}

/* As waitpid(2) has it, of what waitid(2) says. */
static int status_of(const siginfo_t *info)
{
	switch (info->si_code) {
	case CLD_EXITED:
		return W_EXITCODE(info->si_status, 0);
	case CLD_KILLED:
		return W_EXITCODE(0, info->si_status);
	case CLD_DUMPED:
		return W_EXITCODE(0, info->si_status | WCOREFLAG);
	default:
		return W_STOPCODE(info->si_status);
	}
}

/*
 * If it rings before the clock is read, that tells; if at a time before this
 * one, it is waited for again. The call writes the number before a signal is
 * let in at its end: where the handler has jumped out of it, it is seen all the
 * same what was taken. glibc's waitid(3) would be left in the middle: it is one
 * at which a thread can be cancelled.
 */
bool await_next(const struct await *a, uint64_t until_ns, pid_t *ret_pid,
		int *ret_status)
{
	static siginfo_t info;

	assert(a->rings);
	info.si_pid = 0;
	(void)sigsetjmp(out, 0);
	waiting = 1;
	if (info.si_pid == 0 && clock_mono_ns() < until_ns)
		(void)syscall(SYS_waitid, P_ALL, 0, &info,
			      WEXITED | WSTOPPED | __WALL, NULL);
	waiting = 0;
	if (info.si_pid == 0)
		return false;
	*ret_pid = info.si_pid;
	*ret_status = status_of(&info);
	return true;
}
