/* A growing array's memory. */
#ifndef LIB_BASE_ARRAY_H
#define LIB_BASE_ARRAY_H

#include <stddef.h>

#include "lib/base/util.h"

/*
 * Makes room for one more element behind the n that array has: a pointer, NULL
 * at first, that moves if the array grows. cap says how many fit. Returns 0, or
 * -ENOMEM: all stays as it is. By half, not by two: the arrays of a chunk are
 * the most of the process's memory. Indices stay below UINT32_MAX, which stands
 * for none.
 */
#define array_grow(array, n, cap) \
	array_make_room(&(array), (n), &(cap), sizeof(*(array)))

/* array: the address of the pointer, of whatever type. */
must_check int array_make_room(void *array, size_t n, size_t *cap, size_t size);

#endif
