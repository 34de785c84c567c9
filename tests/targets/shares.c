/*
 * A program of known shares: its main thread spends 70 % of its time in
 * busy_seventy() and 30 % in busy_thirty(), another thread, "sleeper", all of
 * it asleep in sleeper().
 *
 * Usage: shares [SECONDS]; 0 or nothing: until it is killed. Says "ready PID"
 * when the other one sleeps, and at the end "rounds N": the work that it got
 * done.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blocked.h"

/* 10 units a round, divided 7:3: about 13 us on a processor of 3 GHz. */
#define UNIT_MIN 500
#define UNIT_MAX 1500

static volatile sig_atomic_t stop;
static atomic_int sleeper_tid;

static void on_alarm(int signal_number)
{
	(void)signal_number;
	stop = 1;
}

/*
 * Each multiplication needs the last one's result, so that the time is that of
 * n multiplications wherever the code lies in memory.
 */
static inline __attribute__((always_inline)) uint64_t burn(uint64_t x, int n)
{
	for (int i = 0; i < n; i++)
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	return x;
}

/* noipa: not inlined, not cloned, and not found to be the same function. */
static __attribute__((noipa)) uint64_t busy_seventy(uint64_t x, int unit)
{
	return burn(x, 7 * unit);
}

static __attribute__((noipa)) uint64_t busy_thirty(uint64_t x, int unit)
{
	return burn(x, 3 * unit);
}

static __attribute__((noipa)) uint64_t work(void)
{
	uint64_t x = 1, rounds = 0;

	/* Rounds of changing length: no clock falls into step with them. */
	while (!stop) {
		int unit = UNIT_MIN + (int)(x >> 33) % (UNIT_MAX - UNIT_MIN);

		x = busy_seventy(x, unit);
		x = busy_thirty(x, unit);
		rounds++;
	}
	return rounds;
}

static __attribute__((noipa)) void sleeper(void)
{
	struct timespec year = {.tv_sec = 365 * 24 * 60 * 60};

	for (;;)
		(void)nanosleep(&year, NULL);
}

static void *sleeper_thread(void *unused)
{
	sleeper_tid = (int)syscall(SYS_gettid);
	sleeper();
	return unused;
}

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	struct sigaction action = {.sa_handler = on_alarm};
	sigset_t all, before;
	pthread_t thread;

	(void)sigaction(SIGALRM, &action, NULL);
	/* The alarm is the main thread's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	if (pthread_create(&thread, NULL, sleeper_thread, NULL) != 0)
		return EXIT_FAILURE;
	(void)pthread_setname_np(thread, "sleeper");
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (sleeper_tid == 0 || blocked_in(sleeper_tid) < 0)
		(void)sched_yield();
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
	(void)alarm((unsigned)seconds);
	printf("rounds %llu\n", (unsigned long long)work());
	return EXIT_SUCCESS;
}
