/*
 * Forever through everything that does not wait, for stops anywhere: a part of
 * zoo.h.
 */

static int compare_only(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

static void on_usr1(int sig)
{
	sink += (unsigned long)sig;
}

static NOINLINE unsigned long sum_of(int n, ...)
{
	unsigned long sum = 0;
	va_list list;

	va_start(list, n);
	while (n-- > 0)
		sum += (unsigned long)va_arg(list, int);
	va_end(list);
	return sum;
}

static NOINLINE unsigned long with_room(int n)
{
	volatile char variable[n + 1];
	volatile char *room = alloca((size_t)n + 16);
	__attribute__((aligned(64))) volatile char aligned[64];

	variable[n] = 1;
	room[n] = 2;
	aligned[n & 63] = 3;
	/* Its caller keeps a frame pointer too, or never has. */
	return (unsigned long)(variable[n] + room[n] + aligned[n & 63]) +
	       (n & 2 ? with_room(n - 2) : sum_of(3, n, 2, 1));
}

static NOINLINE unsigned long tail_of(int n)
{
	return n & 1 ? with_room(n) : sum_of(2, n, n);
}

static void work(void)
{
	struct sigaction sa = {.sa_handler = on_usr1};

	sigaction(SIGUSR1, &sa, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0;; i++) {
		char text[128] = "a zoo of programs";
		struct timespec t;

		qsort(text, strlen(text), 1, compare_only);
		sink += tail_of(i % 100);
		snprintf(text, sizeof(text), "%d %f %s", i, (double)i, "zoo");
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (setjmp(env) == 0)
			longjmp(env, 1);
		if (i % 64 == 0) {
			raise(SIGUSR1);
			free(malloc((size_t)i % 5000));
#ifndef ZOO_NO_CONTEXT
			getcontext(&there);
#endif
		}
		hot_and_cold(2);
	}
}
