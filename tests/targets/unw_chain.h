/*
 * The body of the unw_* targets, which differ in their flags: a program that
 * knows its own stack. argv[1] is what the innermost function does; for
 * blocking things the line "expect" gives the names of its own functions,
 * innermost first.
 */
#ifndef TESTS_TARGETS_UNW_CHAIN_H
#define TESTS_TARGETS_UNW_CHAIN_H

#include <alloca.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
/* After a call: keeps it from becoming a jump. */
#define AFTER_CALL() __asm__ volatile("" ::: "memory")

static volatile unsigned long sink;
static int pipe_fds[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int n_waiting;

static void say_ready(const char *expect)
{
	printf("expect %s\nready\n", expect);
	fflush(stdout);
}

/* Leaves return addresses of calls that are over on the stack below. */
static NOINLINE unsigned long litter(int depth)
{
	volatile unsigned long junk[24];
	unsigned long sum = 0;

	for (int i = 0; i < 24; i++)
		junk[i] = (unsigned long)depth + sink;
	if (depth > 0)
		sum += litter(depth - 1);
	for (int i = 0; i < 24; i++)
		sum += junk[i];
	return sum;
}

static NOINLINE void leaf_nanosleep(void)
{
	const struct timespec t = { 1000000, 0 };

	while (nanosleep(&t, NULL))
		;
	AFTER_CALL();
}

static NOINLINE void leaf_read(void)
{
	char c;

	while (read(pipe_fds[0], &c, 1) < 0)
		;
	AFTER_CALL();
}

static NOINLINE void leaf_poll(void)
{
	struct pollfd p = { .fd = pipe_fds[0], .events = POLLIN };

	while (poll(&p, 1, -1) <= 0)
		;
	AFTER_CALL();
}

static NOINLINE void leaf_futex(void)
{
	pthread_mutex_lock(&mutex);
	n_waiting++;
	while (n_waiting > 0)
		pthread_cond_wait(&cond, &mutex);
	pthread_mutex_unlock(&mutex);
	AFTER_CALL();
}

static NOINLINE unsigned long leaf_spin(void)
{
	for (;;)
		sink++;
	return sink;
}

/* Prologues and epilogues of many kinds, for stops at random places. */
static NOINLINE unsigned long small(unsigned long a, unsigned long b)
{
	return a * 31 + b;
}

static NOINLINE unsigned long many_saved(unsigned long *v, int n)
{
	unsigned long a = 1, b = 2, c = 3, d = 4, e = 5;

	for (int i = 0; i < n; i++) {
		a += small(v[i], b);
		b ^= small(c, d);
		c += small(e, a);
		d -= small(a, v[i]);
		e += small(b, c);
	}
	return a + b + c + d + e;
}

static int compare(const void *a, const void *b)
{
	const unsigned long *x = a;
	const unsigned long *y = b;

	sink++;
	return (*x > *y) - (*x < *y);
}

static NOINLINE unsigned long dynamic(int n)
{
	unsigned long *v = alloca((size_t)n * sizeof(*v));

	for (int i = 0; i < n; i++)
		v[i] = (unsigned long)(i * 7919 % 101);
	qsort(v, (size_t)n, sizeof(*v), compare);
	return many_saved(v, n);
}

static NOINLINE unsigned long recurse(int depth)
{
	unsigned long v[8] = { (unsigned long)depth };

	if (depth == 0)
		return dynamic(20);
	return recurse(depth - 1) + many_saved(v, 8);
}

static NOINLINE unsigned long aligned(int n)
{
	__attribute__((aligned(64))) unsigned long v[16];

	for (int i = 0; i < 16; i++)
		v[i] = (unsigned long)n;
	return many_saved(v, 16) + recurse(n);
}

static NOINLINE void leaf_work(void)
{
	for (unsigned long i = 0;; i++) {
		char text[64];
		struct timespec t;

		sink += aligned((int)(i % 5));
		snprintf(text, sizeof(text), "%lu %f %s", i, (double)i, "x");
		clock_gettime(CLOCK_MONOTONIC, &t);
		sink += strlen(text) + (unsigned long)t.tv_nsec;
	}
}

static void on_signal(int sig)
{
	(void)sig;
	leaf_nanosleep();
	AFTER_CALL();
}

/* A signal that arrives in the middle of ordinary code. */
static NOINLINE void leaf_signal(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGSEGV, &sa, NULL);
	*(volatile int *)(uintptr_t)(sink & 0) = 1;
	AFTER_CALL();
}

static NOINLINE void leaf_raise(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	AFTER_CALL();
}

static void on_signal_spin(int sig)
{
	(void)sig;
	sink += leaf_spin();
	AFTER_CALL();
}

/* A handler on a stack of its own. */
static NOINLINE void raise_elsewhere(void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	stack_t stack = { .ss_size = 1 << 16 };

	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	raise(SIGUSR1);
	AFTER_CALL();
}

static NOINLINE void leaf_other(void)
{
	raise_elsewhere(on_signal);
	AFTER_CALL();
}

static NOINLINE void leaf_other_spin(void)
{
	raise_elsewhere(on_signal_spin);
	AFTER_CALL();
}

static int compare_and_block(const void *a, const void *b)
{
	leaf_read();
	AFTER_CALL();
	return compare(a, b);
}

static NOINLINE void leaf_qsort(void)
{
	unsigned long v[3] = { 3, 2, 1 };

	qsort(v, 3, sizeof(v[0]), compare_and_block);
	AFTER_CALL();
}

/* The last instruction of its caller is the call: it never comes back. */
static NOINLINE __attribute__((noreturn)) void never(void)
{
	for (;;)
		leaf_read();
}

static NOINLINE void leaf_noreturn(void)
{
	never();
}

static const struct mode {
	const char *name;
	void (*fn)(void);
	const char *expect;
} modes[] = {
	{ "nanosleep", leaf_nanosleep, "leaf_nanosleep" },
	{ "read", leaf_read, "leaf_read" },
	{ "poll", leaf_poll, "leaf_poll" },
	{ "futex", leaf_futex, "leaf_futex" },
	{ "spin", (void (*)(void))leaf_spin, "leaf_spin" },
	{ "work", leaf_work, "" },
	{ "signal", leaf_signal, "leaf_nanosleep on_signal leaf_signal" },
	{ "raise", leaf_raise, "leaf_nanosleep on_signal leaf_raise" },
	{ "other", leaf_other,
	  "leaf_nanosleep on_signal raise_elsewhere leaf_other" },
	{ "other_spin", leaf_other_spin,
	  "leaf_spin on_signal_spin raise_elsewhere leaf_other_spin" },
	{ "noreturn", leaf_noreturn, "leaf_read never leaf_noreturn" },
	{ "qsort", leaf_qsort, "leaf_read compare_and_block leaf_qsort" },
};

static NOINLINE void third(const struct mode *m, int n)
{
	char *room = alloca((size_t)n * 16);

	memset(room, n, (size_t)n * 16);
	sink += (unsigned long)room[n];
	m->fn();
	AFTER_CALL();
}

static NOINLINE void second(const struct mode *m)
{
	volatile unsigned long uninitialized[200];

	uninitialized[0] = 1;
	third(m, (int)uninitialized[0] + 4);
	sink += uninitialized[0];
	AFTER_CALL();
}

static NOINLINE void first(const struct mode *m)
{
	sink += litter(8);
	second(m);
	AFTER_CALL();
}

static void *thread_main(void *arg)
{
	first(arg);
	AFTER_CALL();
	return NULL;
}

/* One thread for each way to block; the main thread waits for them. */
static NOINLINE void run_threads(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread_main,
			       (void *)&modes[i]);
	say_ready("threads");
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	AFTER_CALL();
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "spin";
	char expect[256];

	if (pipe(pipe_fds))
		return 1;
	if (strcmp(name, "threads") == 0) {
		run_threads();
		AFTER_CALL();
		return 0;
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, name) != 0)
			continue;
		snprintf(expect, sizeof(expect), "%s third second first main",
			 modes[i].expect);
		say_ready(expect);
		first(&modes[i]);
		AFTER_CALL();
		return 0;
	}
	return 2;
}

#endif
