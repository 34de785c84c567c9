#include "lib/base/table.h"

#include <stdlib.h>
#include <string.h>

struct table_slot {
	uint64_t key;
	uint32_t value;
	uint32_t taken;
};

#define TABLE_FIRST_CAP 16

void table_init(struct table *t, uint64_t seed)
{
	*t = (struct table){.seed = seed};
}

void table_fini(struct table *t)
{
	if (t == NULL)
		return;
	free(t->slots);
	table_init(t, t->seed);
}

void table_clear(struct table *t)
{
	if (t->slots != NULL)
		memset(t->slots, 0, t->cap * sizeof(t->slots[0]));
	t->used = 0;
}

/* The finalizer of MurmurHash3: every bit of the key moves every bit. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	return x;
}

static size_t home_of(const struct table *t, uint64_t key)
{
	return (size_t)mix(key ^ t->seed) & (t->cap - 1);
}

/* Returns the key's slot, or the free slot for it. */
static struct table_slot *find(const struct table *t, uint64_t key)
{
	size_t i = home_of(t, key);

	while (t->slots[i].taken && t->slots[i].key != key)
		i = (i + 1) & (t->cap - 1);
	return &t->slots[i];
}

bool table_get(const struct table *t, uint64_t key, uint32_t *ret_value)
{
	const struct table_slot *slot;

	if (t->used == 0)
		return false;
	slot = find(t, key);
	if (!slot->taken)
		return false;
	*ret_value = slot->value;
	return true;
}

/*
 * Returns true if n entries leave at least a quarter of cap slots free, which keeps lookups short.
 */
static bool fits(size_t n, size_t cap)
{
	return n <= cap - cap / 4;
}

static int resize(struct table *t, size_t cap)
{
	struct table grown = {.cap = cap, .used = t->used, .seed = t->seed};

	grown.slots = calloc(cap, sizeof(grown.slots[0]));
	if (grown.slots == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++)
		if (t->slots[i].taken)
			*find(&grown, t->slots[i].key) = t->slots[i];
	free(t->slots);
	*t = grown;
	return 0;
}

int table_reserve(struct table *t, size_t n)
{
	size_t cap = t->cap == 0 ? TABLE_FIRST_CAP : t->cap;

	while (!fits(n, cap))
		if (__builtin_mul_overflow(cap, (size_t)2, &cap))
			return -ENOMEM;
	return cap == t->cap ? 0 : resize(t, cap);
}

int table_put(struct table *t, uint64_t key, uint32_t value)
{
	struct table_slot *slot;
	int r = table_reserve(t, t->used + 1);

	if (r < 0)
		return r;
	slot = find(t, key);
	if (!slot->taken)
		t->used++;
	*slot = (struct table_slot){.key = key, .value = value, .taken = 1};
	return 0;
}

bool table_remove(struct table *t, uint64_t key)
{
	struct table_slot *hole;
	size_t i;

	if (t->used == 0)
		return false;
	hole = find(t, key);
	if (!hole->taken)
		return false;
	hole->taken = 0;
	t->used--;
	/*
	 * Closes the gap: an entry later in the same run of used slots moves into the hole if its
	 * search starts at or before the hole.
	 */
	i = (size_t)(hole - t->slots);
	for (;;) {
		struct table_slot *next;
		size_t home, from_home, to_hole;

		i = (i + 1) & (t->cap - 1);
		next = &t->slots[i];
		if (!next->taken)
			return true;
		home = home_of(t, next->key);
		from_home = (i - home) & (t->cap - 1);
		to_hole = (i - (size_t)(hole - t->slots)) & (t->cap - 1);
		if (from_home < to_hole)
			continue;
		*hole = *next;
		next->taken = 0;
		hole = next;
	}
}
