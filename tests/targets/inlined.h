/* A function that is always inlined: see inlined.c. */
#ifndef TESTS_TARGETS_INLINED_H
#define TESTS_TARGETS_INLINED_H

enum { IN_HEADER_LINE = __LINE__ + 4 }; /* of the call */
static inline __attribute__((always_inline)) void in_header(void (*next)(void))
{
	__asm__ volatile("" ::: "memory");
	next();
	__asm__ volatile("" ::: "memory");
}

#endif
