/*
 * A pool of strings without duplicates, such as the names and paths of a profile. A string keeps
 * its address until all strings of the pool are freed together.
 */
#ifndef LIB_BASE_STRING_POOL_H
#define LIB_BASE_STRING_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"

struct string_pool {
	struct string_pool_block *blocks; /* memory of the strings, newest first */
	const char **strings;
	size_t n, cap;
	/* From a string's hash to its index in strings. If the key is taken: the next free one. */
	struct table by_hash;
};

/*
 * Initialises an empty pool. With a random hash_seed, a target cannot choose strings whose hashes
 * collide, which would make the pool slow (table.h). Does not allocate.
 */
void string_pool_init(struct string_pool *t, uint64_t hash_seed);
/* Frees the strings; t is as after string_pool_init(). t may be NULL. */
void string_pool_fini(struct string_pool *t);

/*
 * Sets *ret to the pool's copy of s, which is the same pointer for equal strings. Returns 0 or
 * -ENOMEM.
 */
must_check int string_pool_intern(struct string_pool *t, const char *s, const char **ret);

#endif
