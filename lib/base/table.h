/*
 * A hash table from 64-bit keys to 32-bit values, for example from tids to indices of threads, or
 * from addresses to indices of frames. Every number is a valid key and a valid value, 0 included.
 *
 * The table uses open addressing with linear probing. The seed is random (0 in tests), because a
 * target that knew the seed could choose keys that collide, which makes the table slow.
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
	size_t used;		  /* number of keys */
	uint64_t seed;
};

/* Initialises an empty table. Does not allocate. */
void table_init(struct table *t, uint64_t seed);

/* Frees the memory; t is as after table_init(). t may be NULL. */
void table_fini(struct table *t);

/* Removes all keys; the memory stays allocated. */
void table_clear(struct table *t);

/* Looks up a key. Returns false, and writes nothing, if the table does not have it. */
bool table_get(const struct table *t, uint64_t key, uint32_t *ret_value);

/* Adds a key or replaces its value. Returns 0; or -ENOMEM, and changes nothing. */
must_check int table_put(struct table *t, uint64_t key, uint32_t value);

/*
 * Makes room for n keys in all: as long as the table has fewer than n keys, table_put() does not
 * allocate and cannot fail. For callers that must not allocate while a thread is stopped. Returns
 * 0; or -ENOMEM, and changes nothing.
 */
must_check int table_reserve(struct table *t, size_t n);

/* Removes a key. Returns whether the table had it. Does not allocate. */
bool table_remove(struct table *t, uint64_t key);

#endif
