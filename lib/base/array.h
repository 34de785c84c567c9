/*
 * Dynamic arrays: a macro that grows an array, and one that searches a sorted array. The caller
 * keeps the pointer, NULL at first, the number of elements and the capacity, 0 at first. The caller
 * frees the array with free(3).
 */
#ifndef LIB_BASE_ARRAY_H
#define LIB_BASE_ARRAY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/base/util.h"

/*
 * Makes room for one more element after the n elements of array. array is the pointer, and cap a
 * size_t variable with the capacity in elements; both change if the array grows. Returns 0, or
 * -ENOMEM and changes nothing. An array has at most UINT32_MAX elements, so that UINT32_MAX is
 * never an index: with more the macro returns -ENOMEM, too.
 *
 * The capacity grows by half, not to the double, because such arrays are most of unwind's memory.
 */
#define array_grow(array, n, cap) array_make_room(&(array), (n), &(cap), sizeof(*(array)))

/* Only for array_grow(). array: the address of the pointer, of any type. size: of an element. */
must_check int array_make_room(void *array, size_t n, size_t *cap, size_t size);

/*
 * Returns the index of the first of n elements whose member is above key; n if there is none.
 * member is the name of a uint64_t member by which the array is sorted in ascending order. The
 * element before that index is the last one whose member is at most key. For example, in 10, 20,
 * 20, 30 the result for key 5 is 0, for 20 it is 3, and for 30 it is 4.
 */
#define array_upper_bound(array, n, member, key) \
	array_keys_upper_bound((n) > 0 ? &(array)->member : NULL, (n), sizeof(*(array)), (key))

/* Only for array_upper_bound(). first: the first element's member; stride: size of an element. */
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
