/* Arrays of which nobody knows the length before. */
#ifndef LIB_UNWIND_GROW_H
#define LIB_UNWIND_GROW_H

#include <stdlib.h>

#include "lib/base/util.h"

/* Room for one more behind used elements of size in *v. Returns 0, -ENOMEM. */
must_check static inline int grow(void **v, size_t *cap, size_t used,
				  size_t size)
{
	size_t want;
	void *new;

	if (used < *cap)
		return 0;
	want = *cap ? *cap * 2 : 64;
	new = reallocarray(*v, want, size);
	if (!new)
		return -ENOMEM;
	*v = new;
	*cap = want;
	return 0;
}

#endif
