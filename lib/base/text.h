/*
 * A pool of strings without duplicates, such as the names and paths of a profile. A string keeps
 * its address until all strings of the pool are freed together.
 */
#ifndef LIB_BASE_TEXT_H
#define LIB_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"

struct text {
	struct text_block *blocks; /* memory of the strings, newest first */
	const char **strings;
	size_t n, cap;
	struct table by_hash; /* from a string's hash to its index in strings */
};

/*
 * Initialises an empty pool. With a random hash_seed, a target cannot choose strings whose hashes
 * collide, which would make the pool slow (table.h). Does not allocate.
 */
void text_init(struct text *t, uint64_t hash_seed);
/* Frees the strings; t is as after text_init(). t may be NULL. */
void text_fini(struct text *t);

/*
 * Sets *ret to the pool's copy of s, which is the same pointer for equal strings. Returns 0 or
 * -ENOMEM.
 */
must_check int text_intern(struct text *t, const char *s, const char **ret);

#endif
