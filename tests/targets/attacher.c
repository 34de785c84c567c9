/*
 * Traces a whole process, as gcore and crash reporters do: "attacher PID" attaches to each thread,
 * stops it, and says "attached N refused M". Says "ready PID" then, and detaches when it is killed.
 * The exit status is 1 if a thread was refused.
 */
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "target.h"

static bool attach(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return false;
	return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 &&
	       waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
}

int main(int argc, char **argv)
{
	unsigned int attached = 0, refused = 0;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	if (argc < 2)
		return 2;
	(void)snprintf(path, sizeof(path), "/proc/%s/task", argv[1]);
	dir = opendir(path);
	need(dir != NULL);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		if (attach((pid_t)strtol(entry->d_name, NULL, 10)))
			attached++;
		else
			refused++;
	}
	(void)closedir(dir);
	printf("attached %u refused %u\n", attached, refused);
	ready(getpid());
	/* With a second argument it does not wait to be killed. */
	while (refused == 0 && argc == 2)
		(void)pause();
	return refused == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
