// cflags: -shared -fPIC -O1 -fno-optimize-sibling-calls -Wl,--build-id=0x0101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101
/*
 * A shared library for chain.c: one function that calls the next one of a list.
 * Its build-id is long, so that a test can make a copy with a shorter one.
 */

typedef int (*link_fn)(const void *next);

int pass(const void *next);

int pass(const void *next)
{
	const link_fn *list = next;

	return list[0](list + 1) + 1;
}
