/*
 * Usage: vforks N. N threads, each of which waits for a child of vfork(2) of
 * its own: in a sleep that nothing but the child's end ends. A child waits to
 * be killed.
 *
 * Says "child TID PID" of each, "ready", and "done" when all threads have gone
 * on.
 */
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "target.h"

#define THREADS_MAX 256

static _Atomic(int) children[THREADS_MAX], tids[THREADS_MAX];

static void *wait_for_child(void *arg)
{
	const uintptr_t n = (uintptr_t)arg;
	pid_t pid;

	tids[n] = thread_number();
	pid = vfork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		children[n] = (int)getpid();
		for (;;)
			(void)pause();
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		exit(EXIT_FAILURE);
	return NULL;
}

int main(int argc, char **argv)
{
	const unsigned long n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	pthread_t threads[THREADS_MAX];

	if (n == 0 || n > THREADS_MAX)
		return 2;
	for (uintptr_t i = 0; i < n; i++)
		threads[i] = start(wait_for_child, (void *)i);
	for (unsigned long i = 0; i < n; i++) {
		while (children[i] == 0)
			(void)usleep(1000);
		printf("child %d %d\n", tids[i], children[i]);
	}
	printf("ready\n");
	(void)fflush(stdout);
	for (unsigned long i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	printf("done\n");
	(void)fflush(stdout);
	(void)pause();
}
