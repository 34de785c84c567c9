/* A growing array's memory. */
#ifndef LIB_BASE_ARRAY_H
#define LIB_BASE_ARRAY_H

#include <stddef.h>

#include "lib/base/util.h"

/*
 * Room for one more element behind the n of size bytes that array has. Returns
 * the array, moved if it had to grow (*cap says how far), or NULL without
 * memory; then the old one stays as it is. By half, not by two: the arrays of
 * a chunk are the most of the process's memory. Indices stay below
 * UINT32_MAX, which stands for none.
 */
must_check void *array_grow(void *array, size_t n, size_t *cap, size_t size);

#endif
