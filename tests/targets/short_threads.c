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
	uint64_t next_ns;
	struct timespec next;
	unsigned long n = 0;

	handle(SIGUSR1, ask, SA_RESTART);
	ready(getpid());
	next_ns = now_ns();
	while (!asked) {
		need(pthread_join(start(short_lived, NULL), NULL) == 0);
		n++;
		next_ns += PERIOD_NS;
		next = timespec_of(next_ns);
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next,
				      NULL);
	}
	printf("threads %lu\n", n);
	return EXIT_SUCCESS;
}
