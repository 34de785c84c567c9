// cc: gcc
// cflags: -O1 -fno-inline-functions
/*
 * Two functions nested in a third one, a GNU extension of C. Their entries in
 * the debug information lie within the outer function's entry, as in Fortran and
 * Ada. Each of the three has 80 inlined calls. Prints a sum.
 */
#include <stdio.h>

static inline __attribute__((always_inline)) unsigned int step(unsigned int x)
{
	/* Keeps the compiler from merging calls: each has its own code. */
	__asm__ volatile("" : "+r"(x));
	return x * 5 + 1;
}

#define STEPS_4(x)  (x = step(x), x = step(x), x = step(x), x = step(x))
#define STEPS_20(x) \
	(STEPS_4(x), STEPS_4(x), STEPS_4(x), STEPS_4(x), STEPS_4(x))
#define STEPS_80(x) (STEPS_20(x), STEPS_20(x), STEPS_20(x), STEPS_20(x))

static __attribute__((noinline)) unsigned int outer(unsigned int x)
{
	unsigned int sum = x;

	__attribute__((noinline)) void first(unsigned int y)
	{
		STEPS_80(y);
		sum += y;
	}

	__attribute__((noinline)) void second(unsigned int y)
	{
		STEPS_80(y);
		sum ^= y;
	}

	STEPS_80(x);
	first(x);
	second(x);
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%u\n", outer((unsigned int)argc));
	return 0;
}
