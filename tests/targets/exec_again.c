/*
 * A program that becomes itself again and again, a new one on each SIGUSR1.
 *
 * Usage: exec_again LAST. Its one thread is busy in passes(), that of the
 * LAST-th waits in stays(). Says "ready PID", and the N-th after it "again N".
 */
#include "target.h"

static volatile uint64_t rounds;

static __attribute__((noipa)) void passes(void)
{
	while (!asked)
		rounds++;
}

static __attribute__((noipa)) void stays(void)
{
	for (;;)
		(void)pause();
}

int main(int argc, char **argv)
{
	char next[24];
	long n;

	if (argc < 2)
		return 2;
	n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	handle(SIGUSR1, ask, SA_RESTART);
	if (n == 0)
		ready(getpid());
	else
		printf("again %ld\n", n);
	(void)fflush(stdout);
	if (n == strtol(argv[1], NULL, 10))
		stays();
	passes();
	(void)snprintf(next, sizeof(next), "%ld", n + 1);
	(void)execl("/proc/self/exe", argv[0], argv[1], next, (char *)NULL);
	perror("exec");
	return EXIT_FAILURE;
}
