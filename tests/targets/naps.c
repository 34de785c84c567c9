/*
 * naps THREADS WORK_US SLEEP_US [HOW]: each thread computes in work() for WORK_US of
 * processor time, sleeps for SLEEP_US, and again. HOW it sleeps: sleep (clock_nanosleep(2)),
 * poll, epoll, or cond (a condition variable with a timeout).
 */
#include <poll.h>
#include <sys/epoll.h>

#include "target.h"

static long work_ns, sleep_ns;
static const char *how = "sleep";

static unsigned long turns_per_us;

__attribute__((noinline)) static void work(unsigned long turns)
{
	for (volatile unsigned long i = 0; i < turns; i++)
		;
}

static void nap(const struct timespec *time, int epoll, pthread_mutex_t *lock)
{
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct epoll_event event;

	if (strcmp(how, "sleep") == 0)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, time, NULL);
	else if (strcmp(how, "poll") == 0)
		(void)ppoll(NULL, 0, time, NULL);
	else if (strcmp(how, "epoll") == 0)
		(void)syscall(SYS_epoll_pwait2, epoll, &event, 1, time, NULL, 0);
	else {
		const uint64_t end = now_ns() + (uint64_t)time->tv_nsec;
		const struct timespec at = {.tv_sec = (time_t)(end / 1000000000),
					    .tv_nsec = (long)(end % 1000000000)};

		(void)pthread_mutex_lock(lock);
		(void)pthread_cond_clockwait(&never, lock, CLOCK_MONOTONIC, &at);
		(void)pthread_mutex_unlock(lock);
	}
}

static void *run(void *unused)
{
	const struct timespec time = {.tv_nsec = sleep_ns};
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const int epoll = epoll_create1(0);

	for (;;) {
		work(turns_per_us * (unsigned long)work_ns / 1000);
		if (sleep_ns > 0)
			nap(&time, epoll, &lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	uint64_t began;

	if (argc < 4)
		return EXIT_FAILURE;
	if (argc > 4)
		how = argv[4];
	work_ns = 1000 * atol(argv[2]);
	sleep_ns = 1000 * atol(argv[3]);
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	work(10000000);
	turns_per_us = 10000000000 / (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
	for (int i = 1; i < atoi(argv[1]); i++)
		start(run, NULL);
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)run(NULL);
}
