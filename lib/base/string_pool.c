#include "lib/base/string_pool.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"

/* A block holds some hundred names; a longer string gets a block of its own. */
#define BLOCK_BYTES 16384

struct string_pool_block {
	struct string_pool_block *next;
	size_t used, size;
	char bytes[];
};

void string_pool_init(struct string_pool *t, uint64_t hash_seed)
{
	*t = (struct string_pool){0};
	table_init(&t->by_hash, hash_seed);
}

void string_pool_fini(struct string_pool *t)
{
	if (t == NULL)
		return;
	while (t->blocks != NULL) {
		struct string_pool_block *next = t->blocks->next;

		free(t->blocks);
		t->blocks = next;
	}
	free(t->strings);
	table_fini(&t->by_hash);
	string_pool_init(t, t->by_hash.seed);
}

/* FNV-1a. It is seeded, because targets choose the strings and could cause collisions. */
static uint64_t hash(const struct string_pool *t, const char *s)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ t->by_hash.seed;

	for (; *s != '\0'; s++)
		h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	return h;
}

/* Makes room for n bytes in the newest block. */
static int reserve(struct string_pool *t, size_t n)
{
	struct string_pool_block *block = t->blocks;
	size_t size = n > BLOCK_BYTES ? n : BLOCK_BYTES;

	if (block != NULL && block->size - block->used >= n)
		return 0;
	block = malloc(sizeof(*block) + size);
	if (block == NULL)
		return -ENOMEM;
	block->next = t->blocks;
	block->used = 0;
	block->size = size;
	t->blocks = block;
	return 0;
}

int string_pool_intern(struct string_pool *t, const char *s, const char **ret)
{
	uint64_t key = hash(t, s);
	size_t n = strlen(s) + 1;
	uint32_t index;
	char *copy;
	int r;

	/* Strings with the same hash are stored at the following keys. */
	for (; table_get(&t->by_hash, key, &index); key++) {
		if (strcmp(t->strings[index], s) != 0)
			continue;
		*ret = t->strings[index];
		return 0;
	}
	if (array_grow(t->strings, t->n, t->cap) < 0)
		return -ENOMEM;
	r = reserve(t, n);
	if (r == 0)
		r = table_put(&t->by_hash, key, (uint32_t)t->n);
	if (r < 0)
		return r;
	copy = t->blocks->bytes + t->blocks->used;
	memcpy(copy, s, n);
	t->blocks->used += n;
	t->strings[t->n++] = copy;
	*ret = copy;
	return 0;
}
