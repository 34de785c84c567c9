/*
 * Threads that say what pthread_self() is to them: "thread NAME SELF". One has
 * slept since before it said so, one works, and one after the other is short
 * and has the stack of the one before.
 */
#include <semaphore.h>
#include <sys/prctl.h>

#include "target.h"

static sem_t never, said;
static volatile unsigned long work;

static void say(const char *name)
{
	prctl(PR_SET_NAME, name);
	printf("thread %s %ju\n", name, (uintmax_t)(uintptr_t)pthread_self());
	fflush(stdout);
	sem_post(&said);
}

static void *asleep(void *ctx)
{
	say(ctx);
	for (;;)
		sem_wait(&never);
}

static void *busy(void *ctx)
{
	say(ctx);
	for (;;)
		work++;
}

static void *brief(void *ctx)
{
	say(ctx);
	for (unsigned long n = 0; n < 20000000; n++)
		work++;
	return NULL;
}

static pthread_t start_named(void *(*run)(void *), const char *name)
{
	const pthread_t thread = start(run, (void *)(uintptr_t)name);

	sem_wait(&said);
	return thread;
}

int main(void)
{
	char byte;

	sem_init(&never, 0, 0);
	sem_init(&said, 0, 0);
	printf("thread main %ju\n", (uintmax_t)(uintptr_t)pthread_self());
	start_named(asleep, "asleep");
	start_named(busy, "busy");
	ready(getpid());
	while (read(STDIN_FILENO, &byte, 1) == 1) {
		pthread_join(start_named(brief, "brief"), NULL);
		printf("joined\n");
		fflush(stdout);
	}
	return 0;
}
