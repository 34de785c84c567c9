/*
 * A program that notices what is done to it: signals that get lost, system calls
 * that fail or end early without a cause, sums that come out wrong.
 *
 * Usage: unharmed. Says "ready PID". One thread takes SIGRTMIN, which others
 * send to it, another sleeps and reads, a third calculates now and then. A line
 * "end N" on its input: N signals were sent; it waits until they have arrived,
 * prints "unharmed" and ends with 0, or with what was wrong and 1. No signal has a
 * handler here, so that a call which ends early was ended by the profiler.
 */
#include <poll.h>
#include <stdatomic.h>

#include "target.h"

#define NAP_NS	   UINT64_C(3000000)
#define PATIENCE_S 200

static atomic_ulong signals, wrong;
static atomic_bool ends;

static void note(const char *what)
{
	fprintf(stderr, "wrong: %s: %s\n", what, strerror(errno));
	wrong++;
}

static void *take_signals(void *unused)
{
	const sigset_t set = set_of(SIGRTMIN);
	const struct timespec wait = timespec_of(50 * NAP_NS);

	while (!ends)
		if (sigtimedwait(&set, NULL, &wait) == SIGRTMIN)
			signals++;
		else if (errno != EAGAIN)
			note("sigtimedwait");
	return unused;
}

static void *nap(void *unused)
{
	const struct timespec wait = timespec_of(NAP_NS);
	int pair[2];
	char byte = 0;

	need(pipe(pair) == 0);
	while (!ends) {
		struct pollfd readable = {.fd = pair[0], .events = POLLIN};
		const uint64_t since = now_ns();

		if (clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL) != 0)
			note("clock_nanosleep");
		if (poll(&readable, 1, 2) != 0)
			note("poll");
		if (now_ns() - since < NAP_NS)
			note("it has slept too short");
		if (write(pair[1], "x", 1) != 1 || read(pair[0], &byte, 1) != 1)
			note("pipe");
	}
	return unused;
}

static __attribute__((noipa)) uint64_t calculate(uint64_t x)
{
	return burn(x, 300000);
}

static void *work(void *unused)
{
	const struct timespec wait = timespec_of(NAP_NS);
	const uint64_t right = calculate(1);

	while (!ends) {
		if (calculate(1) != right)
			note("a sum");
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
	}
	return unused;
}

static int end(unsigned long sent, pthread_t *threads, size_t n)
{
	const struct timespec wait = timespec_of(NAP_NS);
	const uint64_t since = now_ns();

	while (signals < sent &&
	       now_ns() - since < PATIENCE_S * UINT64_C(1000000000))
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
	ends = true;
	for (size_t i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	if (signals == sent && wrong == 0) {
		printf("unharmed\n");
		return 0;
	}
	printf("%lu of %lu signals, wrong: %lu\n", signals, sent, wrong);
	return 1;
}

int main(void)
{
	pthread_t threads[3];
	char line[64];

	mask(SIG_BLOCK, SIGRTMIN);
	threads[0] = start(take_signals, NULL);
	threads[1] = start(nap, NULL);
	threads[2] = start(work, NULL);
	ready(getpid());
	while (fgets(line, sizeof(line), stdin) != NULL)
		if (strncmp(line, "end ", 4) == 0)
			return end(strtoul(line + 4, NULL, 10), threads, 3);
	return 2;
}
