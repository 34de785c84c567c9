#include "daemon/unwind/limits.h"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "lib/base/clock.h"

static timer_t timer;
static struct itimerspec length; /* all 0: limits_start() has not been called */

/*
 * Limits the process's data size. A lower limit stays. AddressSanitizer's shadow memory counts as
 * data, so a sanitized build has no limit.
 */
static int limit_memory(size_t bytes)
{
	struct rlimit limit;

#ifdef __SANITIZE_ADDRESS__
	bytes = SIZE_MAX;
#endif
	if (getrlimit(RLIMIT_DATA, &limit) < 0)
		return -errno;
	limit.rlim_max = min_u64(limit.rlim_max, bytes);
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_DATA, &limit) < 0 ? -errno : 0;
}

int limits_start(size_t bytes, uint64_t cpu_ns)
{
	/* SIGXCPU has its default action, which ends the process. */
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGXCPU};
	int r = limit_memory(bytes);

	if (r < 0)
		return r;
	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) < 0)
		return -errno;
	length.it_value.tv_sec = (time_t)(cpu_ns / NS_PER_SEC);
	length.it_value.tv_nsec = (long)(cpu_ns % NS_PER_SEC);
	return timer_settime(timer, 0, &length, NULL) < 0 ? -errno : 0;
}

void limits_renew(void)
{
	if (length.it_value.tv_sec != 0 || length.it_value.tv_nsec != 0)
		(void)timer_settime(timer, 0, &length, NULL);
}
