#include <string.h>

#include "lib/unwind/code.h"
#include "lib/unwind/code_read.h"

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
static uint32_t tail_of(struct unwind_space *s, struct space_mapping *m,
			const struct map *map, const struct symbol *symbol)
{
	const uint64_t vaddr = m->image->base + symbol->start;
	uint8_t code[TAIL_MAX];
	uint32_t fact = 0;
	int32_t distance;
	size_t n;

	if (table_get(&m->image->facts[FACTS_TAILS], vaddr, &fact))
		return fact;
	n = code_read(s, m, map, vaddr, code, symbol->size);
	if (n == symbol->size && code[n - TAIL_SIZE] == 0xe9) {
		memcpy(&distance, code + n - 4, sizeof(distance));
		fact = symbol->start + (uint32_t)n + (uint32_t)distance;
	}
	code_remember(s, &m->image->facts[FACTS_TAILS], vaddr, fact);
	return fact;
}

/*
 * The last place in front of vaddr to which such a function leads: where a
 * static one begins that has an exported name (malloc of musl).
 */
static uint32_t start_by_tail(struct unwind_space *s, struct space_mapping *m,
			      const struct map *map, uint64_t vaddr)
{
	const struct symbols *symbols = &m->image->symbols;
	const uint64_t at = vaddr - m->image->base;
	uint32_t best = 0;

	for (size_t i = 0; i < symbols->n; i++) {
		uint32_t size = symbols->v[i].size;
		uint32_t start;

		if (size < TAIL_SIZE || size > TAIL_MAX)
			continue;
		start = tail_of(s, m, map, &symbols->v[i]);
		if (start > best && start <= at)
			best = start;
	}
	return at - best < CODE_FRAMED_MAX ? best : 0;
}

uint64_t code_function(struct unwind_space *s, uint64_t addr, uint32_t *budget)
{
	const struct map *map;
	struct space_mapping *m = code_mapping(s, addr, &map);
	const char *name;
	uint64_t offset, vaddr;
	uint32_t fact = 0;
	uint32_t cost;

	if (!m)
		return 0;
	vaddr = addr - m->bias;
	if (symbols_find(&m->image->symbols, vaddr, &name, &offset))
		return addr - offset;
	if (!m->image->symbols_tried || m->image->symbols.n > SYMBOLS_SEEN)
		return 0;
	if (!table_get(&m->image->facts[FACTS_FUNCTIONS], vaddr, &fact)) {
		cost = (uint32_t)m->image->symbols.n * SYMBOL_WORK;
		if (cost > *budget)
			return 0;
		*budget -= cost;
		fact = start_by_tail(s, m, map, vaddr);
		code_remember(s, &m->image->facts[FACTS_FUNCTIONS], vaddr,
			      fact);
	}
	return fact > 0 ? m->bias + m->image->base + fact : 0;
}
