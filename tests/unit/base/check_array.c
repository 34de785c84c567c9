#include "lib/base/array.h"

#include <stdlib.h>

#include "tests/unit/suite.h"

struct element {
	uint32_t value;
	uint64_t key;
};

TEST(growing_keeps_the_elements)
{
	struct element *v = NULL;
	size_t n = 0, cap = 0;

	for (; n < 1000; n++) {
		OK(array_grow(v, n, cap));
		ck_assert_uint_gt(cap, n);
		v[n].value = (uint32_t)n;
	}
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(v[i].value, i);
	free(v);
}

TEST(without_memory_nothing_changes)
{
	struct element *v = NULL;
	struct element *const before = v;
	size_t cap = SIZE_MAX / sizeof(*v);

	ck_assert_int_eq(array_grow(v, cap, cap), -ENOMEM);
	ck_assert_ptr_eq(v, before);
	ck_assert_uint_eq(cap, SIZE_MAX / sizeof(*v));
	/* UINT32_MAX is never an index. */
	cap = UINT32_MAX;
	ck_assert_int_eq(array_grow(v, cap, cap), -ENOMEM);
}

TEST(the_upper_bound_follows_the_last_at_or_below)
{
	const struct element v[] = {{0, 3}, {0, 3}, {0, 5}, {0, UINT64_MAX}};
	const struct element *const none = NULL;

	for (size_t n = 0; n <= array_size(v); n++)
		for (uint64_t key = 0; key < 8; key++) {
			size_t is = 0;

			while (is < n && v[is].key <= key)
				is++;
			ck_assert_uint_eq(array_upper_bound(v, n, key, key), is);
		}
	ck_assert_uint_eq(array_upper_bound(v, 4, key, UINT64_MAX), 4);
	ck_assert_uint_eq(array_upper_bound(none, 0, key, 5), 0);
}
