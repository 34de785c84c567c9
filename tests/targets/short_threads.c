/*
 * Creates and joins 200 threads a second, each busy in short_lived() for about
 * a millisecond.
 *
 * Says "ready PID"; on SIGUSR1 it says "threads N", the number of those that
 * lived, and ends.
 */
#include "target.h"

#define PERIOD_NS 5000000
#define STEPS	  700000


static __attribute__((noipa)) void *short_lived(void *unused)
{
	for (volatile int i = 0; i < STEPS; i++)
		;
	return unused;
}

int main(void)
{
	struct timespec next;
	unsigned long n = 0;

	handle(SIGUSR1, ask, SA_RESTART);
	ready(getpid());
	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	while (!asked) {
		need(pthread_join(start(short_lived, NULL), NULL) == 0);
		n++;
		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next,
				      NULL);
	}
	printf("threads %lu\n", n);
	return EXIT_SUCCESS;
}
