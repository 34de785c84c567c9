/*
 * A server with workers, which does what its standard input says, a line each:
 *   fork        a worker more; prints "worker PID"
 *   exec PATH   runs that program in its place, with the same input
 *   name NAME   is called so from now on; prints "named"
 *   title TEXT  has that for a command line, cut off; prints "titled"
 * Without input it goes on; workers end with it.
 */
#include <sys/prctl.h>

#include "target.h"

static void work(void)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)pause();
}

/* As servers do it that show there what they are at: in the text's place. */
static void set_title(int argc, char **argv, const char *title)
{
	char *end = argv[argc - 1] + strlen(argv[argc - 1]);
	const size_t size = (size_t)(end - argv[0]);
	const size_t n = strlen(title);

	memset(argv[0], 0, size);
	memcpy(argv[0], title, n < size ? n : size);
}

int main(int argc, char **argv)
{
	char line[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* What an exec would find is left to it. */
	setvbuf(stdin, NULL, _IONBF, 0);
	printf("ready %d\n", (int)getpid());
	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *argument = strchr(line, ' ');

		line[strcspn(line, "\n")] = '\0';
		if (argument != NULL)
			*argument++ = '\0';
		if (strcmp(line, "fork") == 0) {
			pid_t pid = fork();

			if (pid == 0)
				work();
			printf("worker %d\n", (int)pid);
		} else if (strcmp(line, "exec") == 0) {
			execl(argument, argument, (char *)NULL);
			perror(argument);
		} else if (strcmp(line, "name") == 0) {
			(void)prctl(PR_SET_NAME, argument);
			printf("named\n");
		} else if (strcmp(line, "title") == 0) {
			set_title(argc, argv, argument);
			printf("titled\n");
		}
	}
	for (;;)
		(void)pause();
}
