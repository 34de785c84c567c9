#include "daemon/unwind/resource_limits.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"

static timer_t timer;
static struct itimerspec length; /* all 0: resource_limits_start() has not been called */

/* Lowers the limit of the resource to bytes. A limit that is lower already stays as it is. */
static int lower_limit(__rlimit_resource_t resource, uint64_t bytes)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	limit.rlim_max = min_u64(limit.rlim_max, bytes);
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

void resource_limits_be_killed_first(void)
{
	static const char highest[] = "1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, highest, strlen(highest));
	close_fd(&fd);
}

static int limit_memory(size_t bytes, size_t file_bytes)
{
	int r;

#ifdef __SANITIZE_ADDRESS__
	/* AddressSanitizer's shadow memory counts as data. */
	bytes = SIZE_MAX;
#endif
	r = lower_limit(RLIMIT_DATA, bytes);
	if (r < 0)
		return r;
	/* Writing beyond the limit fails with EFBIG. */
	(void)signal(SIGXFSZ, SIG_IGN);
	return lower_limit(RLIMIT_FSIZE, file_bytes);
}

int resource_limits_start(size_t bytes, size_t file_bytes, uint64_t cpu_ns)
{
	/* SIGXCPU has its default action, which ends the process. */
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGXCPU};
	int r = limit_memory(bytes, file_bytes);

	if (r < 0)
		return r;
	if (timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer) < 0)
		return -errno;
	length.it_value.tv_sec = (time_t)(cpu_ns / NS_PER_SEC);
	length.it_value.tv_nsec = (long)(cpu_ns % NS_PER_SEC);
	return timer_settime(timer, 0, &length, NULL) < 0 ? -errno : 0;
}

void resource_limits_renew(void)
{
	if (length.it_value.tv_sec != 0 || length.it_value.tv_nsec != 0)
		(void)timer_settime(timer, 0, &length, NULL);
}
