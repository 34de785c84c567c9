/*
 * A hash table from 64-bit keys to 32-bit values: from tids to thread slots, from addresses to
 * frames, from pairs of parent and frame to nodes of stacks.
 *
 * Open addressing with linear probing. The seed is random (0 in tests), because a target chooses
 * keys and could make them collide, which makes the table slow.
 */
#ifndef LIB_BASE_TABLE_H
#define LIB_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

struct table {
	struct table_slot *slots; /* NULL: nothing is allocated yet */
	size_t cap;		  /* a power of two, or 0 */
	size_t used;
	uint64_t seed;
};

/* Initialises an empty table. Does not allocate. */
void table_init(struct table *t, uint64_t seed);

/* Frees the memory; t is as after table_init(). t may be NULL. */
void table_fini(struct table *t);

/* Removes all keys; the memory stays allocated. */
void table_clear(struct table *t);

/* Looks a key up. Returns false, and writes nothing, if it is not there. */
bool table_get(const struct table *t, uint64_t key, uint32_t *ret_value);

/* Adds a key or replaces its value. Returns 0 or -ENOMEM. */
must_check int table_put(struct table *t, uint64_t key, uint32_t value);

/*
 * Makes room for n keys in all: up to that number table_put() does not allocate and cannot fail.
 * For callers that must not allocate while a thread is stopped. Returns 0 or -ENOMEM.
 */
must_check int table_reserve(struct table *t, size_t n);

/* Removes a key. Returns whether it was there. */
bool table_remove(struct table *t, uint64_t key);

#endif
