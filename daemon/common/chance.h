/* Numbers that nobody can tell beforehand. */
#ifndef DAEMON_COMMON_CHANCE_H
#define DAEMON_COMMON_CHANCE_H

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

/* n <= 256. Fails on no kernel that we run on; the largest does no harm. */
static inline void chance_bytes(void *ret, size_t n)
{
	if (getrandom(ret, n, 0) != (ssize_t)n)
		memset(ret, 0xff, n);
}

static inline uint64_t chance_number(void)
{
	uint64_t number;

	chance_bytes(&number, sizeof(number));
	return number;
}

/* n > 0; of so few bits of so many, none is met noticeably more often. */
static inline uint64_t chance_below(uint64_t n)
{
	return chance_number() % n;
}

#endif
