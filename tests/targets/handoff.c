/*
 * handoff HOW WORK_US: two threads that hand work to each other. Each computes in work() for
 * WORK_US of processor time at its turn, and then wakes the other one by a condition variable
 * (cond), a pipe (pipe), a semaphore (sem), or without a call (yield: sched_yield(2) until it has
 * its turn).
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "target.h"

struct way {
	const char *name;
	void (*take)(int me);
	void (*give)(int other);
};

static unsigned long turns;
static const struct way *way;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int pipes[2][2];
static sem_t sems[2];
static atomic_int turn;

static void take_cond(int me)
{
	(void)pthread_mutex_lock(&lock);
	while (turn != me)
		(void)pthread_cond_wait(&turned[me], &lock);
	(void)pthread_mutex_unlock(&lock);
}

static void give_cond(int other)
{
	(void)pthread_mutex_lock(&lock);
	turn = other;
	(void)pthread_cond_signal(&turned[other]);
	(void)pthread_mutex_unlock(&lock);
}

static void take_pipe(int me)
{
	char byte;

	(void)!read(pipes[me][0], &byte, 1);
}

static void give_pipe(int other)
{
	(void)!write(pipes[other][1], "", 1);
}

static void take_sem(int me)
{
	(void)sem_wait(&sems[me]);
}

static void give_sem(int other)
{
	(void)sem_post(&sems[other]);
}

static void take_yield(int me)
{
	while (turn != me)
		(void)sched_yield();
}

static void give_yield(int other)
{
	turn = other;
}

static const struct way ways[] = {
	{"cond", take_cond, give_cond},
	{"pipe", take_pipe, give_pipe},
	{"sem", take_sem, give_sem},
	{"yield", take_yield, give_yield},
};

__attribute__((noinline)) static void work(unsigned long n)
{
	for (volatile unsigned long i = 0; i < n; i++)
		;
}

static void *run(void *arg)
{
	const int me = *(const int *)arg;

	for (;;) {
		way->take(me);
		work(turns);
		way->give(!me);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static const int first = 0, second = 1;
	uint64_t began;

	for (size_t i = 0; argc == 3 && i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(argv[1], ways[i].name) == 0)
			way = &ways[i];
	if (way == NULL || pipe(pipes[0]) < 0 || pipe(pipes[1]) < 0)
		return EXIT_FAILURE;
	began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	work(10000000);
	turns = 10000000000 / (clock_ns(CLOCK_THREAD_CPUTIME_ID) - began) *
		strtoul(argv[2], NULL, 10);
	(void)sem_init(&sems[0], 0, 0);
	(void)sem_init(&sems[1], 0, 0);
	way->give(0);
	start(run, (void *)&second);
	ready(getpid());
	(void)run((void *)&first);
}
