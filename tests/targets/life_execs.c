/*
 * A program that runs itself anew again and again, each time from one of many
 * threads, while others are started: exec has to end them all, whoever looks.
 *
 * Usage: life_execs N. The N-th ends with status 0.
 */
#include "life.h"

#define THREADS 12

static char *program, *left;

static void *run_anew(void *unused)
{
	execl(program, program, left, "again", NULL);
	give_up("exec");
	return unused;
}

static void *come_and_go(void *unused)
{
	pthread_t thread;

	for (;;)
		if (pthread_create(&thread, NULL, run_anew, NULL) != 0)
			return unused;
	return unused;
}

static void *start_none(void *unused)
{
	return unused;
}

static void *storm(void *unused)
{
	pthread_t thread;

	for (;;)
		if (pthread_create(&thread, NULL, start_none, NULL) == 0)
			(void)pthread_join(thread, NULL);
	return unused;
}

static void *sleep_on(void *unused)
{
	for (;;)
		(void)pause();
	return unused;
}

int main(int argc, char **argv)
{
	static char number[24];
	pthread_t thread;
	uint64_t seed;
	long n;

	if (argc < 2)
		return 2;
	n = strtol(argv[1], NULL, 10);
	if (argc == 2) {
		begin();
		printf("pid %d\n", getpid() == thread_number());
	}
	if (getpid() != thread_number())
		give_up("exec has made another thread the main one");
	if (n == 0) {
		printf("done\n");
		return 0;
	}
	(void)snprintf(number, sizeof(number), "%ld", n - 1);
	program = argv[0];
	left = number;
	seed = (uint64_t)n * 2 + 1;
	for (int i = 0; i < THREADS; i++)
		start(i % 3 == 0 ? storm : sleep_on, NULL);
	run_for(draw(&seed) % 20000000);
	/* From the main thread, from another, or from several at once. */
	switch (n % 3) {
	case 0:
		(void)run_anew(NULL);
		break;
	case 1:
		(void)pthread_create(&thread, NULL, run_anew, NULL);
		break;
	default:
		(void)pthread_create(&thread, NULL, come_and_go, NULL);
		break;
	}
	for (;;)
		(void)pause();
}
