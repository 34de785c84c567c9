/*
 * A program that makes a dump of itself without a signal: it releases itself from sentry-profd, and
 * then a program attaches to all of its threads. Usage: dumper ATTACHER. Lines of stdin: "release
 * SECONDS", "open", "close" (a root span), "id". Prints one line for each.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/client/sentry_profd.h"

enum { THREADS = 8 };

static void *work(void *ctx)
{
	if (ctx != NULL)
		for (;;)
			(void)pause();
	for (volatile unsigned long n = 0;; n++)
		;
	return NULL;
}

/* Runs the attacher on this process. Returns its exit status. */
static int attach(const char *attacher)
{
	const pid_t pid = fork();
	char own[16];
	int status = -1;

	if (pid == 0) {
		(void)snprintf(own, sizeof(own), "%d", getppid());
		(void)execl(attacher, attacher, own, "once", (char *)NULL);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *release(void *line)
{
	const int r = sentry_profd_release((unsigned int)strtoul((const char *)line + 8, NULL, 10));

	printf("released %d\n", r);
	return NULL;
}

int main(int argc, char **argv)
{
	sentry_profd_span span = 0;
	char line[64], id[SENTRY_PROFD_PROFILER_ID_SIZE];
	pthread_t thread;

	if (argc != 2)
		return 2;
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (long k = 0; k < THREADS; k++)
		if (pthread_create(&thread, NULL, work, k == 0 ? NULL : &thread) != 0)
			return 1;
	(void)sentry_profd_connect(NULL);
	(void)sentry_profd_wait(60000);
	printf("ready\n");
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strncmp(line, "release ", 8) == 0) {
			/* Any thread may. */
			if (pthread_create(&thread, NULL, release, line) != 0 ||
			    pthread_join(thread, NULL) != 0)
				return 1;
			(void)fflush(stdout);
			printf("dumped %d\n", attach(argv[1]));
		} else if (strcmp(line, "open\n") == 0) {
			span = sentry_profd_root_span_begin(1);
			printf("opened\n");
		} else if (strcmp(line, "close\n") == 0) {
			sentry_profd_root_span_end(span);
			printf("closed\n");
		} else {
			printf("id %d %s\n", sentry_profd_profiler_id(id, sizeof(id)), id);
		}
		(void)fflush(stdout);
	}
	return 0;
}
