/*
 * A storm of threads: RATE of them a second for SECONDS, each of which adds
 * what it was given to a sum, some at once, some after a while.
 *
 * Usage: life_storm RATE SECONDS. No thread may be lost, none may be refused,
 * and each gives back its own argument when it is joined.
 */
#include "life.h"

#define IN_FLIGHT 64

static atomic_ulong sum;

static void *add(void *arg)
{
	unsigned long n = (unsigned long)(uintptr_t)arg;

	if (n % 5 == 0)
		run_for(n % 200000);
	if (n % 7 == 0)
		(void)usleep((useconds_t)(n % 20000));
	atomic_fetch_add(&sum, n);
	return arg;
}

static void join_one(pthread_t thread, unsigned long n)
{
	void *given_back;

	must(pthread_join(thread, &given_back) == 0, "pthread_join");
	if (given_back != (void *)(uintptr_t)n)
		wrong("thread %lu gives back %p", n, given_back);
}

int main(int argc, char **argv)
{
	pthread_t threads[IN_FLIGHT], busy;
	unsigned long total, rate, expected = 0;
	uint64_t since;

	if (argc != 3)
		return 2;
	rate = strtoul(argv[1], NULL, 10);
	total = rate * strtoul(argv[2], NULL, 10);
	begin();
	busy = start(calculate, NULL);
	since = now_ns();
	for (unsigned long n = 0; n < total; n++) {
		if (n >= IN_FLIGHT)
			join_one(threads[n % IN_FLIGHT], n - IN_FLIGHT);
		threads[n % IN_FLIGHT] = start(add, (void *)(uintptr_t)n);
		expected += n;
		/* Ahead of its time: it is the rate that is asked for. */
		while (now_ns() - since < n * (1000000000 / rate))
			(void)usleep(500);
	}
	for (unsigned long n = total > IN_FLIGHT ? total - IN_FLIGHT : 0;
	     n < total; n++)
		join_one(threads[n % IN_FLIGHT], n);
	atomic_store(&ending, true);
	join(busy);
	printf("threads %lu sum %lu\n", total, atomic_load(&sum));
	if (atomic_load(&sum) != expected)
		wrong("a sum of %lu", expected);
	return finish();
}
