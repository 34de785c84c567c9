/*
 * Creates and joins 200 threads a second, each busy in short_lived() for about
 * a millisecond.
 *
 * Says "ready PID"; on SIGUSR1 it says "threads N", the number of those that
 * lived, and ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 5000000
#define STEPS	  700000

static volatile sig_atomic_t asked;

static void on_signal(int number)
{
	(void)number;
	asked = 1;
}

static __attribute__((noipa)) void *short_lived(void *unused)
{
	for (volatile int i = 0; i < STEPS; i++)
		;
	return unused;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct timespec next;
	unsigned long n = 0;
	pthread_t thread;

	(void)sigaction(SIGUSR1, &action, NULL);
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	while (!asked) {
		if (pthread_create(&thread, NULL, short_lived, NULL) != 0 ||
		    pthread_join(thread, NULL) != 0)
			return EXIT_FAILURE;
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
