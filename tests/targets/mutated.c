// cflags: -shared -fPIC -fno-optimize-sibling-calls -Wl,-z,separate-code -Wl,--build-id
/*
 * A shared library whose copies are mutated (tests/storm/elf_mutants.py): mutants.c maps only the
 * segment with its code, so the code needs no relocation and calls nothing outside of it.
 */
#include <stdint.h>

typedef int (*next_fn)(const void *next);

int pass(const void *next);

/* Inlined twice, for the lines of inlined functions. */
static inline __attribute__((always_inline)) uint64_t mix(uint64_t x)
{
	for (int i = 0; i < 1000; i++)
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
	return x;
}

/* Has a frame pointer and a frame of variable size, and thus other rules than its caller. */
static __attribute__((noinline)) uint64_t spread(uint64_t x)
{
	volatile uint64_t v[x % 7 + 1];

	v[0] = mix(x);
	for (uint64_t i = 1; i < x % 7 + 1; i++)
		v[i] = mix(v[i - 1]);
	return v[x % 7];
}

/* Works for some microseconds, and calls the first function of the list with the others. */
int pass(const void *next)
{
	const next_fn *list = next;
	uint64_t x = mix((uint64_t)(uintptr_t)next);

	for (int i = 0; i < 100; i++)
		x = spread(x);
	return list[0](list + 1) + (int)(x & 1);
}
