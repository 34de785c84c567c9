#include <string.h>

#include "lib/unwind/space/code.h"
#include "lib/unwind/space/code_read.h"

/*
 * Functions that are nothing but a jump to another one: endbr64 and that. More
 * symbols than a C library has are not looked through.
 */
#define TAIL_SIZE    5
#define TAIL_MAX     9
#define SYMBOLS_SEEN 8192
/* What each costs of a budget. */
#define SYMBOL_WORK 4

/* Where the function leads to, relative to base; 0: it is something else. */
static uint32_t tail_of(const struct code_at *c, const struct symbol *symbol)
{
	uint8_t code[TAIL_MAX];
	struct code_at tail;
	uint32_t fact = 0;
	int32_t distance;
	size_t n;

	if (!code_ask(c->space, CODE_TAILS,
		      c->mapping->bias + c->mapping->image->base + symbol->start, 0, &tail, &fact))
		return fact;
	n = code_read(&tail, tail.vaddr, code, symbol->size);
	if (n == symbol->size && code[n - TAIL_SIZE] == 0xe9) {
		memcpy(&distance, code + n - 4, sizeof(distance));
		fact = symbol->start + (uint32_t)n + (uint32_t)distance;
	}
	code_remember(&tail, fact);
	return fact;
}

/*
 * The last place in front of c to which such a function leads: where a static
 * one begins that has an exported name (malloc of musl).
 */
static uint32_t start_by_tail(const struct code_at *c)
{
	const struct symbols *symbols = &c->mapping->image->symbols;
	const uint64_t at = c->vaddr - c->mapping->image->base;
	uint32_t best = 0;

	for (size_t i = 0; i < symbols->n; i++) {
		uint32_t size = symbols->v[i].size;
		uint32_t start;

		if (size < TAIL_SIZE || size > TAIL_MAX)
			continue;
		start = tail_of(c, &symbols->v[i]);
		if (start > best && start <= at)
			best = start;
	}
	return at - best < CODE_FRAMED_MAX ? best : 0;
}

uint64_t code_function(struct unwind_space *s, uint64_t addr, uint32_t *budget)
{
	const struct map *map;
	const struct space_mapping *m = code_mapping(s, addr, &map);
	const struct image *image = m ? m->image : NULL;
	struct code_at c;
	const char *name;
	uint64_t offset;
	uint32_t fact = 0;
	uint32_t cost;

	if (!m)
		return 0;
	if (symbols_find(&image->symbols, addr - m->bias, &name, &offset))
		return addr - offset;
	if (!image->symbols_tried || image->symbols.n > SYMBOLS_SEEN)
		return 0;
	if (code_ask(s, CODE_FUNCTIONS, addr, 0, &c, &fact)) {
		cost = (uint32_t)image->symbols.n * SYMBOL_WORK;
		if (cost > *budget)
			return 0;
		*budget -= cost;
		fact = start_by_tail(&c);
		code_remember(&c, fact);
	}
	return fact > 0 ? m->bias + image->base + fact : 0;
}
