/* Numbers that nobody can tell beforehand. */
#ifndef DAEMON_CHANCE_H
#define DAEMON_CHANCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>

/* Fails on no kernel that we run on; the largest number does no harm. */
static inline uint64_t chance_number(void)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return UINT64_MAX;
	return number;
}

static inline void chance_bytes(uint8_t *ret, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = (uint8_t)chance_number();
}

/* n > 0; of so few bits of so many, none is met noticeably more often. */
static inline uint64_t chance_below(uint64_t n)
{
	return chance_number() % n;
}

#endif
