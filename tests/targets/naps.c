/*
 * naps THREADS WORK_US SLEEP_US: each thread computes in work() for WORK_US of
 * processor time, sleeps in clock_nanosleep(2) for SLEEP_US, and again.
 */
#include "target.h"

static long work_ns, sleep_ns;

static unsigned long turns_per_us;

__attribute__((noinline)) static void work(unsigned long turns)
{
	for (volatile unsigned long i = 0; i < turns; i++)
		;
}

static void *run(void *unused)
{
	const struct timespec nap = {.tv_nsec = sleep_ns};

	for (;;) {
		work(turns_per_us * (unsigned long)work_ns / 1000);
		if (sleep_ns > 0)
			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
	return unused;
}

int main(int argc, char **argv)
{
	uint64_t began;

	if (argc != 4)
		return EXIT_FAILURE;
	work_ns = 1000 * atol(argv[2]);
	sleep_ns = 1000 * atol(argv[3]);
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	work(10000000);
	turns_per_us =
		10000000000 / (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began);
	for (int i = 1; i < atoi(argv[1]); i++)
		start(run, NULL);
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)run(NULL);
}
