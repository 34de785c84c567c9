/*
 * A program whose main thread leaves before its other thread, "survivor", which
 * is busy in survivor_work(), called by survivor_run().
 *
 * Says "ready PID"; on SIGUSR1 the main thread, until then in leader_work(),
 * exits. On SIGUSR2 the whole process ends with status 3.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t leave;
static volatile sig_atomic_t end;
static volatile uint64_t rounds;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		leave = 1;
	else
		end = 1;
}

static __attribute__((noipa)) void survivor_work(void)
{
	for (int i = 0; i < 1000; i++)
		rounds++;
}

static __attribute__((noipa)) void survivor_run(void)
{
	while (!end)
		survivor_work();
}

static void *survivor(void *unused)
{
	survivor_run();
	exit(3);
	return unused;
}

static __attribute__((noipa)) void leader_work(void)
{
	while (!leave)
		rounds++;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pthread_t thread;

	(void)sigaction(SIGUSR1, &action, NULL);
	(void)sigaction(SIGUSR2, &action, NULL);
	if (pthread_create(&thread, NULL, survivor, NULL) != 0)
		return EXIT_FAILURE;
	(void)pthread_setname_np(thread, "survivor");
	/* It is where it stays. */
	while (rounds == 0)
		(void)sched_yield();
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
	leader_work();
	pthread_exit(NULL);
}
