/*
 * Sends itself signals and makes threads, one after the other, until its input
 * ends. Says "ready PID", and at the end "longest" and the longest time of such
 * a signal and such a thread's life, in microseconds.
 */
#include <poll.h>

#include "target.h"

static void ignore(int signal)
{
	(void)signal;
}

static void *live_shortly(void *unused)
{
	return unused;
}

int main(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	uint64_t longest = 0;

	handle(SIGUSR1, ignore, SA_RESTART);
	ready(getpid());
	while (poll(&input, 1, 0) == 0) {
		const uint64_t since = now_ns();

		(void)raise(SIGUSR1);
		(void)pthread_join(start(live_shortly, NULL), NULL);
		if (now_ns() - since > longest)
			longest = now_ns() - since;
	}
	printf("longest %lu\n", (unsigned long)(longest / 1000));
	return 0;
}
