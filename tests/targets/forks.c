/*
 * Makes a child every 20 ms, in turn by fork, by vfork and exec of itself, and
 * by clone without SIGCHLD, which PTRACE_O_TRACECLONE attaches as if it were a
 * thread. Each child is busy in child_work() for 10 ms or more, until it finds
 * itself without a tracer, a second at most.
 *
 * Says "ready PID"; on SIGUSR1 it says "children N traced M": all of them, and
 * those that were traced to their end; and ends.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORK_MS	   10
#define GIVE_UP_MS 200000 /* nobody let go of it */

static volatile sig_atomic_t asked;
static volatile uint64_t rounds;

static void on_signal(int number)
{
	(void)number;
	asked = 1;
}

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int is_traced(void)
{
	static const char key[] = "TracerPid:\t";
	char text[4096];
	const char *line;
	ssize_t n;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0)
		return 1;
	text[n] = '\0';
	line = strstr(text, key);
	return line == NULL || line[sizeof(key) - 1] != '0';
}

static __attribute__((noipa)) int child_work(void)
{
	long start = now_ms();

	while (now_ms() - start < WORK_MS)
		rounds++;
	while (is_traced())
		if (now_ms() - start > GIVE_UP_MS)
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
	struct sigaction action = {.sa_handler = on_signal,
				   .sa_flags = SA_RESTART};
	const struct timespec pause_time = {.tv_nsec = 20 * 1000 * 1000};
	unsigned long n = 0, traced = 0;

	if (argc > 1)
		return child_work();
	(void)sigaction(SIGUSR1, &action, NULL);
	printf("ready %ld\n", (long)getpid());
	(void)fflush(stdout);
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
