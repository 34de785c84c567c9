/*
 * Strings, each kept once, at an address that does not change: the names and
 * paths of one chunk, or of a session's table. Freed all together.
 */
#ifndef LIB_BASE_TEXT_H
#define LIB_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/table.h"
#include "lib/base/util.h"

struct text {
	struct text_block *blocks; /* where the bytes are, newest first */
	const char **strings;
	size_t n, cap;
	struct table by_hash; /* of a string, to its index in strings */
};

/* Empty. Allocates nothing. */
void text_init(struct text *t, uint64_t hash_seed);
/* Frees the strings; t is as after text_init. Takes NULL. */
void text_fini(struct text *t);

/* *ret is t's copy of s: the same pointer for the same string. 0 or -ENOMEM. */
must_check int text_intern(struct text *t, const char *s, const char **ret);

#endif
