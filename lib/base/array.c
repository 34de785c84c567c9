#include "lib/base/array.h"

#include <stdlib.h>

#define ARRAY_FIRST_CAP 64

int array_make_room(void *array, size_t n, size_t *cap, size_t size)
{
	const size_t more = *cap < ARRAY_FIRST_CAP ? ARRAY_FIRST_CAP : *cap + *cap / 2;
	void *elements;

	if (n < *cap)
		return 0;
	if (n >= UINT32_MAX)
		return -ENOMEM;
	/*
	 * Pointers of all types have the same representation, but C does not allow to access one
	 * through a void **. So the pointer is copied.
	 */
	memcpy(&elements, array, sizeof(elements));
	/* cppcheck-suppress memleakOnRealloc ; *array still has the pointer */
	elements = reallocarray(elements, more, size);
	if (elements == NULL)
		return -ENOMEM;
	memcpy(array, &elements, sizeof(elements));
	*cap = more;
	return 0;
}
