/*
 * Dynamic arrays: growing one, and binary search in a sorted one. The array is the caller's: a
 * pointer, NULL at first, with its number of elements and its capacity.
 */
#ifndef LIB_BASE_ARRAY_H
#define LIB_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/util.h"

/*
 * Makes room for one more element after the n elements of array. cap is the capacity in elements, a
 * size_t variable. array, the pointer, and cap change if the array grows. Returns 0, or -ENOMEM and
 * changes nothing; an array has at most UINT32_MAX elements, so that UINT32_MAX is never an index.
 *
 * The capacity grows by half, not to the double, because the arrays of profiles that are being made
 * are most of unwind's memory.
 */
#define array_grow(array, n, cap) array_make_room(&(array), (n), &(cap), sizeof(*(array)))

/* For array_grow. array: the address of the pointer, whatever its type is. */
must_check int array_make_room(void *array, size_t n, size_t *cap, size_t size);

/*
 * Returns the index of the first of n elements whose member is above key, or n. member is a
 * uint64_t by which the array is sorted. So the element before that index is the last one at
 * or below key.
 */
#define array_upper_bound(array, n, member, key) \
	array_keys_upper_bound((n) > 0 ? &(array)->member : NULL, (n), sizeof(*(array)), (key))

/* For array_upper_bound. first: the member of the first element; stride: size of an element. */
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
