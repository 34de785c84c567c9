/*
 * A parent that tells what waitpid(2) says of its child, the target. Says
 * "ready PID" with the child's number, then a line for each status: "stopped
 * SIGNAL", "continued 0", "exited STATUS" or "killed SIGNAL". The child answers
 * each line of its input by "alive 0"; at the input's end it exits with 3.
 */
#include <sys/prctl.h>
#include <sys/wait.h>

#include "target.h"

static void tell(int status)
{
	if (WIFSTOPPED(status))
		printf("stopped %d\n", WSTOPSIG(status));
	else if (WIFCONTINUED(status))
		printf("continued 0\n");
	else if (WIFEXITED(status))
		printf("exited %d\n", WEXITSTATUS(status));
	else
		printf("killed %d\n", WTERMSIG(status));
}

int main(void)
{
	pid_t pid = fork();
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pid == 0) {
		char byte;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (read(STDIN_FILENO, &byte, 1) == 1)
			if (byte == '\n')
				printf("alive 0\n");
		_exit(3);
	}
	ready(pid);
	while (waitpid(pid, &status, WUNTRACED | WCONTINUED) == pid) {
		tell(status);
		if (WIFEXITED(status) || WIFSIGNALED(status))
			return 0;
	}
	return 1;
}
