/*
 * Knows its own source: functions inlined into each other, here and in a
 * header. Prints what it expects of its stack, innermost first: the function,
 * the file's name and the line of the call.
 */
// cflags: -O2 -g
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "inlined.h"

#define NOINLINE __attribute__((noinline))
/* After a call: keeps it from becoming a jump. */
#define AFTER_CALL() __asm__ volatile("" ::: "memory")

static volatile int forever = 1;

static NOINLINE void wait_here(void)
{
	const struct timespec t = {1, 0};

	while (forever)
		nanosleep(&t, NULL);
	AFTER_CALL();
}

enum { INNER_LINE = __LINE__ + 3 };
static inline __attribute__((always_inline)) void inner(void)
{
	wait_here();
	AFTER_CALL();
}

enum { OUTER_LINE = __LINE__ + 3 };
static NOINLINE void outer(void)
{
	in_header(inner);
	AFTER_CALL();
}

enum { MAIN_LINE = __LINE__ + 9 };
int main(void)
{
	printf("expect inner inlined.c %d\n", INNER_LINE);
	printf("expect in_header inlined.h %d\n", IN_HEADER_LINE);
	printf("expect outer inlined.c %d\n", OUTER_LINE);
	printf("expect main inlined.c %d\n", MAIN_LINE);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	outer();
	return 0;
}
