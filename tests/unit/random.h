/*
 * Pseudo-random numbers for tests that try many cases. The same seed gives the same numbers, so
 * that a failure can be repeated. The numbers can be predicted.
 */
#ifndef TESTS_UNIT_RANDOM_H
#define TESTS_UNIT_RANDOM_H

#include <stdint.h>

/*
 * Returns the next number of 64 bits, by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). *state is
 * the seed before the first call, any number.
 */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

#endif
