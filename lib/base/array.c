#include "lib/base/array.h"

#include <stdlib.h>

#define ARRAY_FIRST_CAP 64

void *array_grow(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more =
		*cap < ARRAY_FIRST_CAP ? ARRAY_FIRST_CAP : *cap + *cap / 2;

	if (n < *cap)
		return array;
	if (n >= UINT32_MAX)
		return NULL;
	array = reallocarray(array, more, size);
	if (array != NULL)
		*cap = more;
	return array;
}
