/*
 * A program that spends as much of its time in first() as the caller says, and
 * the rest in second().
 *
 * Usage: two_shares TENTHS. Says "ready PID"; runs until it is killed.
 */
#include "target.h"

/* A tenth of a round: about 1.3 us on a processor of 3 GHz. */
#define UNIT_MIN 500
#define UNIT_MAX 1500

static __attribute__((noipa)) uint64_t first(uint64_t x, int n)
{
	return burn(x, n);
}

static __attribute__((noipa)) uint64_t second(uint64_t x, int n)
{
	return burn(x, n);
}

int main(int argc, char **argv)
{
	const int tenths = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 5;
	uint64_t x = 1;

	ready(getpid());
	/* Rounds of changing length: no clock falls into step with them. */
	for (;;) {
		const int unit =
			UNIT_MIN + (int)(x >> 33) % (UNIT_MAX - UNIT_MIN);

		x = first(x, tenths * unit);
		x = second(x, (10 - tenths) * unit);
	}
}
