/* Arrays: memory for one that grows, and search in a sorted one. */
#ifndef LIB_BASE_ARRAY_H
#define LIB_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/util.h"

/*
 * Makes room for one more element behind the n that array has: a pointer, NULL
 * at first, that moves if the array grows. cap says how many fit. Returns 0, or
 * -ENOMEM: all stays as it is. By half, not by two: the arrays of a chunk are
 * the most of the process's memory. Indices stay below UINT32_MAX, which stands
 * for none.
 */
#define array_grow(array, n, cap) array_make_room(&(array), (n), &(cap), sizeof(*(array)))

/* array: the address of the pointer, of whatever type. */
must_check int array_make_room(void *array, size_t n, size_t *cap, size_t size);

/*
 * How many of an array's n elements have a member, a uint64_t by which they are
 * sorted, of at most key. So that index is the first one above key, and the one
 * before it the last at or below.
 */
#define array_upper_bound(array, n, member, key) \
	array_keys_upper_bound((n) > 0 ? &(array)->member : NULL, (n), sizeof(*(array)), (key))

/* first: the member of the first element; they are stride bytes apart. */
static inline size_t array_keys_upper_bound(const uint64_t *first, size_t n, size_t stride,
					    uint64_t key)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		uint64_t at;

		memcpy(&at, (const char *)first + middle * stride, sizeof(at));
		if (at <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

#endif
