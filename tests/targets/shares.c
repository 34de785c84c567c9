/*
 * A program of known shares: its main thread spends 70 % of its time in
 * busy_seventy() and 30 % in busy_thirty(), another thread, "sleeper", all of
 * it asleep in sleeper().
 *
 * Usage: shares [SECONDS]; 0 or nothing: until it is killed. Says "ready PID"
 * when the other one sleeps, and at the end "rounds N": the work that it got
 * done.
 */
#include <stdatomic.h>

#include "target.h"
#include "blocked.h"

/* 10 units a round, divided 7:3: about 13 us on a processor of 3 GHz. */
#define UNIT_MIN 500
#define UNIT_MAX 1500

static atomic_int sleeper_tid;

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
	while (!asked) {
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
	sleeper_tid = thread_number();
	sleeper();
	return unused;
}

int main(int argc, char **argv)
{
	long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	sigset_t all, before;

	handle(SIGALRM, ask, 0);
	/* The alarm is the main thread's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &before);
	(void)pthread_setname_np(start(sleeper_thread, NULL), "sleeper");
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	while (sleeper_tid == 0 || blocked_in(sleeper_tid) < 0)
		(void)sched_yield();
	ready(getpid());
	(void)alarm((unsigned)seconds);
	printf("rounds %llu\n", (unsigned long long)work());
	return EXIT_SUCCESS;
}
