/*
 * What exec_first becomes: its main thread is busy in second_main(), its thread
 * "second" in second_thread(). Says "second PID"; until it is killed.
 */
#include "target.h"

static volatile uint64_t rounds;

static __attribute__((noipa)) void second_main(void)
{
	for (;;)
		rounds++;
}

static __attribute__((noipa)) void *second_thread(void *unused)
{
	while (unused == NULL)
		rounds += 2;
	return unused;
}

int main(void)
{
	(void)pthread_setname_np(start(second_thread, NULL), "second");
	printf("second %ld\n", (long)getpid());
	(void)fflush(stdout);
	second_main();
}
