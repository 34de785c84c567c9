/*
 * Numbers for tests that try many cases: the same for the same seed, so that a
 * failure comes again. Not for anything that has to be unpredictable.
 */
#ifndef TESTS_UNIT_RANDOM_H
#define TESTS_UNIT_RANDOM_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); *state may be any number. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

#endif
