/*
 * A program that changes its user, and computes in ids_busy() all the time.
 *
 * Usage: ids MODE UID, started as root. "stay": never changes. "worker": takes all ids of the user
 * for good at a line from its input, without an exec, as servers do, and becomes dumpable at the
 * next one. "effective": takes the effective uid at a line, and root's again at the next one.
 * "flip": changes the effective uid some thousand times a second. "prefork": four children take all
 * ids of the user for good, if this is root, and then compute a tenth of the time. Says "ready PID"
 * at first, and "done" after each line.
 */
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "target.h"

static uid_t user;

static __attribute__((noipa)) uint64_t ids_busy(uint64_t x)
{
	return burn(x, 100000);
}

static void check(int r)
{
	if (r == 0)
		return;
	perror("ids");
	exit(1);
}

static void become_user(void)
{
	check(setgroups(0, NULL));
	check(setresgid(user, user, user));
	check(setresuid(user, user, user));
}

static void change(const char *mode)
{
	if (strcmp(mode, "worker") == 0 && getuid() == user) {
		check(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	} else if (strcmp(mode, "worker") == 0) {
		become_user();
	} else if (strcmp(mode, "effective") == 0) {
		check(seteuid(geteuid() == 0 ? user : 0));
	}
}

static void *read_lines(void *mode)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		change(mode);
		printf("done\n");
		(void)fflush(stdout);
	}
	return NULL;
}

static void work(void)
{
	if (getuid() == 0)
		become_user();
	/* A change of ids clears this. */
	check(prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	for (uint64_t x = 1; x != 0; x = ids_busy(x))
		(void)usleep(1000);
	_exit(1);
}

static void fork_workers(void)
{
	for (int i = 0; i < 4; i++) {
		const pid_t pid = fork();

		check(pid < 0);
		if (pid == 0)
			work();
	}
	printf("ready %d\n", getpid());
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

int main(int argc, char *argv[])
{
	pthread_t reader;
	uint64_t x = 1;

	if (argc != 3)
		return 2;
	user = (uid_t)strtoul(argv[2], NULL, 10);
	if (strcmp(argv[1], "prefork") == 0)
		fork_workers();
	check(pthread_create(&reader, NULL, read_lines, argv[1]));
	printf("ready %d\n", getpid());
	(void)fflush(stdout);
	for (;;) {
		if (strcmp(argv[1], "flip") == 0) {
			check(seteuid(user));
			check(seteuid(0));
		}
		x = ids_busy(x);
		if (x == 0)
			return 0;
	}
}
