/*
 * A hash table from a 64-bit key to a 32-bit value: tids to thread slots,
 * addresses to frames, (parent, frame) pairs to stack nodes.
 *
 * Open addressing with linear probing. A table belongs to one owner; a pointer
 * into it is never given out. Keys come from targets: a target that chooses
 * them so that they collide makes its own table slow, so the hash is seeded
 * by the caller (0 in tests).
 */
#ifndef LIB_BASE_TABLE_H
#define LIB_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

struct table {
	struct table_slot *slots; /* NULL while empty */
	size_t cap;		  /* a power of two, or 0 */
	size_t used;
	uint64_t seed;
};

/* An empty table. Allocates nothing. */
void table_init(struct table *t, uint64_t seed);

/* Frees everything; t is as after table_init. Takes NULL. */
void table_fini(struct table *t);

/* Removes all keys and keeps the memory. */
void table_clear(struct table *t);

/* True if key is there; its value goes to *ret_value. */
bool table_get(const struct table *t, uint64_t key, uint32_t *ret_value);

/* Adds key or replaces its value. Returns 0 or -ENOMEM. */
must_check int table_put(struct table *t, uint64_t key, uint32_t value);

/*
 * Makes room for n keys in all, so that as many table_put succeed without
 * allocating: needed where nothing may be allocated. Returns 0 or -ENOMEM.
 */
must_check int table_reserve(struct table *t, size_t n);

/* True if key was there and is gone now. */
bool table_remove(struct table *t, uint64_t key);

#endif
