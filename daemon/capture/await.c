#include "daemon/capture/await.h"

#include <assert.h>
#include <errno.h>

#include "lib/base/clock.h"
#include "lib/capture/ptrace/tracee.h"

/* Does nothing: the arrival of the signal makes a waiting call return EINTR. */
static void on_timer(int signal)
{
	(void)signal;
}

void await_init(struct await *a)
{
	const struct sigaction action = {.sa_handler = on_timer};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = AWAIT_SIGNAL};

	*a = (struct await){0};
	a->made = sigaction(AWAIT_SIGNAL, &action, NULL) == 0 &&
		  timer_create(CLOCK_MONOTONIC, &event, &a->timer) == 0;
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

void await_set_timer(struct await *a, uint64_t first_ns, uint64_t again_ns)
{
	const struct itimerspec times = {
		.it_value = as_timespec(first_ns),
		.it_interval = as_timespec(again_ns),
	};

	if (a->made)
		a->is_set = timer_settime(a->timer, TIMER_ABSTIME, &times, NULL) == 0;
}

void await_clear_timer(struct await *a)
{
	const struct itimerspec never = {.it_value.tv_sec = 0};

	if (a->is_set)
		(void)timer_settime(a->timer, 0, &never, NULL);
	a->is_set = false;
}

/* A signal between the reading of the clock and the wait is lost, so the timer repeats it. */
bool await_next(const struct await *a, uint64_t until_ns, pid_t *ret_tid, int *ret_status)
{
	assert(a->is_set);
	do {
		if (clock_mono_ns() >= until_ns)
			return false;
		*ret_tid = tracee_wait(-1, true, ret_status);
	} while (*ret_tid < 0 && errno == EINTR);
	return *ret_tid > 0;
}
