/*
 * A program that becomes another one.
 *
 * Usage: exec_first leader|thread PROGRAM. Its main thread is busy in
 * first_main(), its thread "first" in first_thread(). Says "ready PID"; on
 * SIGUSR1 the one of them that the first argument names calls exec.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char **arguments;
static volatile sig_atomic_t asked;
static volatile uint64_t rounds;

static void on_signal(int number)
{
	(void)number;
	asked = 1;
}

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
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;

	if (argc != 3)
		return 2;
	arguments = argv;
	(void)sigaction(SIGUSR1, &action, NULL);
	if (pthread_create(&thread, NULL, first_thread, thread_name) != 0)
		return EXIT_FAILURE;
	(void)pthread_setname_np(thread, "first");
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
	first_main("leader");
}
