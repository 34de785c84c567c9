/*
 * A program whose main thread leaves before its other thread, "survivor", which
 * is busy in survivor_work(), called by survivor_run().
 *
 * Says "ready PID"; on SIGUSR1 the main thread, until then in leader_work(),
 * exits. On SIGUSR2 the whole process ends with status 3.
 */
#include <sched.h>

#include "target.h"

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
	handle(SIGUSR1, on_signal, 0);
	handle(SIGUSR2, on_signal, 0);
	(void)pthread_setname_np(start(survivor, NULL), "survivor");
	/* It is where it stays. */
	while (rounds == 0)
		(void)sched_yield();
	ready(getpid());
	leader_work();
	pthread_exit(NULL);
}
