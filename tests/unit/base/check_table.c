#include "lib/base/table.h"

#include <stdlib.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

TEST(an_empty_table_has_no_key)
{
	struct table t;
	uint32_t value = 7;

	table_init(&t, 0);
	ck_assert(!table_get(&t, 0, &value));
	ck_assert(!table_remove(&t, 0));
	ck_assert_uint_eq(value, 7);
	ck_assert_ptr_null(t.slots);
	table_clear(&t);
	table_fini(&t);
	table_fini(NULL);
}

TEST(every_key_and_value_is_possible)
{
	static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63};
	struct table t;
	uint32_t value = 1;

	table_init(&t, 0);
	for (size_t i = 0; i < array_size(keys); i++) {
		ck_assert(!table_get(&t, keys[i], &value));
		OK(table_put(&t, keys[i], 0));
		ck_assert(table_get(&t, keys[i], &value));
		ck_assert_uint_eq(value, 0);
		OK(table_put(&t, keys[i], UINT32_MAX));
		ck_assert(table_get(&t, keys[i], &value));
		ck_assert_uint_eq(value, UINT32_MAX);
	}
	ck_assert_uint_eq(t.used, array_size(keys));
	table_fini(&t);
	ck_assert(!table_get(&t, 0, &value));
}

/*
 * Random operations on few keys, each present about half of the time, against an array as a model.
 * Small tables have many collisions. Removing is the error-prone part of linear probing: after each
 * removal all other keys are looked up.
 */
#define KEYS 40

struct model {
	bool there[KEYS];
	uint32_t value[KEYS];
};

/* Keys that are close together, and far apart. */
static uint64_t key_of(size_t i, uint64_t stride)
{
	return i * stride;
}

static bool agree(const struct table *t, const struct model *m, uint64_t stride)
{
	size_t used = 0;

	for (size_t i = 0; i < KEYS; i++) {
		uint32_t value = 0;
		bool there = table_get(t, key_of(i, stride), &value);

		if (there != m->there[i] || (there && value != m->value[i]))
			return false;
		used += there;
	}
	return t->used == used;
}

TESTS(random_operations_agree_with_a_model, 6)
{
	static const uint64_t strides[] = {1, 4096, UINT64_C(0x9e3779b97f4a7c15)};
	uint64_t stride = strides[(size_t)_i % array_size(strides)];
	uint64_t random = (uint64_t)_i;
	struct model m = {.there = {false}};
	struct table t;

	table_init(&t, random_next(&random));
	for (int step = 0; step < 5000; step++) {
		size_t i = random_next(&random) % KEYS;
		uint64_t key = key_of(i, stride);
		uint32_t value = (uint32_t)random_next(&random);

		unsigned dice = (unsigned)(random_next(&random) % 1024);

		if (dice == 0) {
			table_clear(&t);
			m = (struct model){.there = {false}};
		} else if (dice % 2) {
			OK(table_put(&t, key, value));
			m.there[i] = true;
			m.value[i] = value;
		} else {
			ck_assert_int_eq(table_remove(&t, key), m.there[i]);
			m.there[i] = false;
		}
		ck_assert(agree(&t, &m, stride));
	}
	table_fini(&t);
}

TEST(a_table_grows_to_many_keys)
{
	enum { N = 20000 };
	struct table t;
	uint32_t value = 0;

	table_init(&t, 0);
	for (uint32_t i = 0; i < N; i++)
		OK(table_put(&t, i * UINT64_C(4096), i));
	for (uint32_t i = 0; i < N; i += 2)
		ck_assert(table_remove(&t, i * UINT64_C(4096)));
	ck_assert_uint_eq(t.used, N / 2);
	for (uint32_t i = 0; i < N; i++) {
		ck_assert_int_eq(table_get(&t, i * UINT64_C(4096), &value), i % 2);
		if (i % 2)
			ck_assert_uint_eq(value, i);
	}
	table_fini(&t);
}

/* After table_reserve() table_put() does not allocate: the memory stays the same. */
TEST(reserved_room_is_used_without_allocating)
{
	for (uint32_t n = 1; n < 300; n++) {
		const struct table_slot *slots;
		struct table t;

		table_init(&t, n);
		OK(table_reserve(&t, n));
		slots = t.slots;
		for (uint32_t i = 0; i < n; i++)
			OK(table_put(&t, i, i));
		ck_assert_ptr_eq(t.slots, slots);
		table_clear(&t);
		for (uint32_t i = 0; i < n; i++)
			OK(table_put(&t, i + n, i));
		ck_assert_ptr_eq(t.slots, slots);
		table_fini(&t);
	}
}

TEST(a_reservation_beyond_all_memory_is_refused)
{
	struct table t;
	uint32_t value = 0;

	table_init(&t, 0);
	OK(table_put(&t, 1, 2));
	ck_assert_int_eq(table_reserve(&t, SIZE_MAX), -ENOMEM);
	ck_assert_int_eq(table_reserve(&t, SIZE_MAX / 64), -ENOMEM);
	ck_assert(table_get(&t, 1, &value));
	ck_assert_uint_eq(value, 2);
	table_fini(&t);
}
