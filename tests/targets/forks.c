/*
 * Makes a child every 20 ms, in turn by fork, by vfork and exec of itself, and
 * by clone without SIGCHLD, which PTRACE_O_TRACECLONE attaches as if it were a
 * thread. Each child is busy in child_work() for 10 ms or more, until it finds
 * itself without a tracer, a second at most.
 *
 * Says "ready PID"; on SIGUSR1 it says "children N traced M": all of them, and
 * those that were traced to their end; and ends.
 */
#include <sched.h>
#include <sys/wait.h>

#include "target.h"

#define WORK_NS	   UINT64_C(10000000)
#define GIVE_UP_NS UINT64_C(200000000000) /* nobody let go of it */

static volatile uint64_t rounds;

static __attribute__((noipa)) int child_work(void)
{
	const uint64_t since = now_ns();

	while (now_ns() - since < WORK_NS)
		rounds++;
	while (is_traced())
		if (now_ns() - since > GIVE_UP_NS)
			return 1;
	return 0;
}

static int cloned(void *unused)
{
	(void)unused;
	_exit(child_work());
}

static pid_t make_child(unsigned long n, char *self)
{
	static char stack[256 * 1024] __attribute__((aligned(16)));
	char *argv[] = {self, (char[]){"child"}, NULL};
	pid_t pid;

	switch (n % 3) {
	case 0:
		pid = fork();
		if (pid == 0)
			_exit(child_work());
		return pid;
	case 1:
		pid = vfork();
		if (pid == 0) {
			(void)execv(self, argv);
			_exit(127);
		}
		return pid;
	default:
		return clone(cloned, stack + sizeof(stack), 0, NULL);
	}
}

int main(int argc, char **argv)
{
	const struct timespec pause_time = {.tv_nsec = 20 * 1000 * 1000};
	unsigned long n = 0, traced = 0;

	if (argc > 1)
		return child_work();
	handle(SIGUSR1, ask, SA_RESTART);
	ready(getpid());
	while (!asked) {
		pid_t pid = make_child(n++, argv[0]);
		int status;

		if (pid < 0 || waitpid(pid, &status, __WALL) != pid)
			return EXIT_FAILURE;
		traced += status != 0;
		(void)nanosleep(&pause_time, NULL);
	}
	printf("children %lu traced %lu\n", n, traced);
	return EXIT_SUCCESS;
}
