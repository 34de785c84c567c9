/*
 * Traces a process: "tracer PID" attaches to its main thread, says "ready PID"
 * and lets it run, stopping for nothing, until it is killed.
 */
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "target.h"

int main(int argc, char **argv)
{
	pid_t pid = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	int status;

	if (pid <= 0)
		return 2;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0) {
		perror("PTRACE_SEIZE");
		return EXIT_FAILURE;
	}
	ready(getpid());
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		(void)ptrace(PTRACE_CONT, pid, NULL,
			     (void *)(intptr_t)WSTOPSIG(status));
	return EXIT_SUCCESS;
}
