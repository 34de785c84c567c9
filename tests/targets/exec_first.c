/*
 * A program that becomes another one.
 *
 * Usage: exec_first leader|thread PROGRAM. Its main thread is busy in
 * first_main(), its thread "first" in first_thread(). Says "ready PID"; on
 * SIGUSR1 the one of them that the first argument names calls exec.
 */
#include "target.h"

static char **arguments;
static volatile uint64_t rounds;

static void become(void)
{
	(void)execl(arguments[2], arguments[2], (char *)NULL);
	perror(arguments[2]);
	exit(EXIT_FAILURE);
}

static __attribute__((noipa)) void first_main(const char *who)
{
	while (!asked || strcmp(who, arguments[1]) != 0)
		rounds++;
	become();
}

static __attribute__((noipa)) void *first_thread(void *who)
{
	while (!asked || strcmp(who, arguments[1]) != 0)
		rounds++;
	become();
	return NULL;
}

int main(int argc, char **argv)
{
	static char thread_name[] = "thread";

	if (argc != 3)
		return 2;
	arguments = argv;
	handle(SIGUSR1, ask, SA_RESTART);
	(void)pthread_setname_np(start(first_thread, thread_name), "first");
	ready(getpid());
	first_main("leader");
}
