/*
 * The function of a library that swaps.c loads: is busy for ns in SWAP_WORK, whose frame has
 * SWAP_BYTES. The rules of one library find no caller in the other one.
 */
#ifndef TESTS_TARGETS_SWAP_H
#define TESTS_TARGETS_SWAP_H

#include "target.h"

static __attribute__((noipa)) void SWAP_WORK(uint64_t ns)
{
	const uint64_t since = now_ns();
	volatile uint64_t room[SWAP_BYTES / 8];

	do {
		room[0] = burn(room[0], 20000);
	} while (now_ns() - since < ns);
}

void entry(uint64_t ns);
void entry(uint64_t ns)
{
	volatile uint64_t room[SWAP_BYTES / 16];

	room[0] = ns;
	SWAP_WORK(room[0]);
}

#endif
