#include "lib/unwind/space/code.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/space/code_read.h"
#include "lib/unwind/cpu.h"

/* An image that has so many answers forgets them and starts again. */
#define FACTS_MAX (256u * 1024)

/*
 * What calls holds: one of these, or the target relative to base plus N. LAST:
 * there is no call, and none comes back from what follows.
 */
enum { FACT_UNKNOWN, FACT_NONE, FACT_LAST, FACT_INDIRECT, FACT_N };

/* Of a key: more than the parts of a function are apart. */
#define DISTANCE_BITS 28

/* What starts holds: these bits, and the words of the frame. */
#define FACT_SIGRETURN	 1u
#define FACT_HAS_FRAME	 2u
#define FACT_STUB	 4u
#define FACT_FRAME_SHIFT 3

/*
 * More than an instruction that changes the stack pointer has, and a multiple
 * of what others are aligned to.
 */
#define FRAME_OVERLAP 8
/* Bytes that are looked at for a unit of a budget. */
#define FRAME_BYTES 4

size_t code_read(const struct code_at *c, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	struct unwind_cache *cache = c->space->cache;
	struct cache_source source = space_source(c->space, c->map);
	struct image *image = c->mapping->image;
	uint64_t offset;
	uint64_t left;
	int fd;

	if (!image_file_offset(image, vaddr, &offset, &left) || image->unread_at == cache->clock)
		return 0;
	n = (size_t)min_u64(n, left);
	fd = cache_fd(cache, image, &source);
	if (fd >= 0 && pread_all(fd, bytes, n, offset) == 0)
		return n;
	/* Not even asked for again in this call. */
	image->unread_at = cache->clock;
	cache->unread_at = cache->clock;
	return 0;
}

void code_remember(const struct code_at *c, uint32_t fact)
{
	struct unwind_cache *cache = c->space->cache;
	struct table *t = &c->mapping->image->facts;

	if (cache->unread_at == cache->clock)
		return;
	if (t->used >= FACTS_MAX)
		table_clear(t);
	if (table_put(t, c->key, fact) == 0)
		cache->grown = true;
}

struct space_mapping *code_mapping(struct unwind_space *s, uint64_t addr,
				   const struct map **ret_map)
{
	struct space_mapping *m = space_mapping(s, addr, ret_map);

	if (!m || !m->image || m->lost)
		return NULL;
	cache_reads(s->cache, m->image);
	return m;
}

bool code_ask(struct unwind_space *s, enum code_question question, uint64_t addr, uint64_t distance,
	      struct code_at *ret, uint32_t *fact)
{
	const uint64_t half = UINT64_C(1) << (DISTANCE_BITS - 1);
	const struct map *map;
	struct space_mapping *m = code_mapping(s, addr, &map);
	uint64_t at;

	if (!m)
		return false;
	at = addr - m->bias - m->image->base;
	if (at > UINT32_MAX || distance + half >= 2 * half)
		return false;
	*ret = (struct code_at){
		.space = s,
		.mapping = m,
		.map = map,
		.vaddr = addr - m->bias,
		.key = ((uint64_t)question << 32 | at) << DISTANCE_BITS |
		       (distance & (2 * half - 1)),
	};
	return !table_get(&m->image->facts, ret->key, fact);
}

/* False if the code can't be read. */
static bool read_call(const struct code_at *c, uint32_t *ret)
{
	const uint64_t behind_it = c->vaddr + 1;
	uint8_t code[CPU_CALL_MAX];
	uint8_t behind[CPU_LAST_MAX];
	int32_t displacement;
	uint64_t target;
	size_t n;

	n = code_read(c, behind_it - sizeof(code), code, sizeof(code));
	if (n < sizeof(code))
		return false;
	*ret = FACT_NONE;
	switch (cpu_call_before(code, n, &displacement)) {
	case CPU_CALL_NONE:
		n = code_read(c, behind_it, behind, sizeof(behind));
		if (cpu_never_returns(behind, n))
			*ret = FACT_LAST;
		break;
	case CPU_CALL_DIRECT:
		target = behind_it + (uint64_t)(int64_t)displacement - c->mapping->image->base +
			 FACT_N;
		/* Code does not call itself out of its file. */
		if (target >= FACT_N && target <= UINT32_MAX)
			*ret = (uint32_t)target;
		break;
	case CPU_CALL_INDIRECT:
		*ret = FACT_INDIRECT;
		break;
	}
	return true;
}

enum code_call code_call_before(struct unwind_space *s, uint64_t addr, uint64_t *ret_target)
{
	uint32_t fact = FACT_UNKNOWN;
	struct code_at c;

	if (code_ask(s, CODE_CALLS, addr - 1, 0, &c, &fact) && read_call(&c, &fact))
		code_remember(&c, fact);
	switch (fact) {
	case FACT_UNKNOWN:
		return CODE_CALL_UNKNOWN;
	case FACT_NONE:
		return CODE_CALL_NONE;
	case FACT_LAST:
		return CODE_CALL_LAST;
	case FACT_INDIRECT:
		return CODE_CALL_INDIRECT;
	}
	*ret_target = c.mapping->bias + c.mapping->image->base + (fact - FACT_N);
	return CODE_CALL_DIRECT;
}

static uint32_t facts_at(struct unwind_space *s, uint64_t addr)
{
	uint8_t code[CPU_PROLOGUE_MAX];
	uint32_t fact = 0;
	struct code_at c;
	uint32_t size;
	size_t n;

	if (!code_ask(s, CODE_STARTS, addr, 0, &c, &fact))
		return fact;
	n = code_read(&c, c.vaddr, code, sizeof(code));
	if (cpu_is_sigreturn(code, n))
		fact |= FACT_SIGRETURN;
	if (cpu_is_stub(code, n))
		fact |= FACT_STUB;
	if (cpu_frame_size(code, n, &size) && size % 8 == 0 &&
	    size / 8 <= UINT32_MAX >> FACT_FRAME_SHIFT)
		fact |= FACT_HAS_FRAME | size / 8 << FACT_FRAME_SHIFT;
	code_remember(&c, fact);
	return fact;
}

bool code_frame_size(struct unwind_space *s, uint64_t addr, uint32_t *ret_size)
{
	uint32_t fact = facts_at(s, addr);

	*ret_size = 8 * (fact >> FACT_FRAME_SHIFT);
	return (fact & FACT_HAS_FRAME) != 0;
}

bool code_is_stub(struct unwind_space *s, uint64_t addr)
{
	return (facts_at(s, addr) & FACT_STUB) != 0;
}

bool code_is_sigreturn(struct unwind_space *s, uint64_t addr)
{
	return (facts_at(s, addr) & FACT_SIGRETURN) != 0;
}

/* How many bytes the function at c has; max: so many or more. */
static size_t function_size(const struct code_at *c, size_t max)
{
	const struct rows *rows = image_rows(c->mapping->image, c->vaddr);
	size_t size = 0;
	uint64_t start;

	while (size < max) {
		size_t middle = max - (max - size) / 2;

		if (rows_function(rows, c->vaddr + middle - 1, &start) && start == c->vaddr)
			size = middle;
		else
			max = middle - 1;
	}
	return size;
}

bool code_is_birth(struct unwind_space *s, uint64_t addr)
{
	uint8_t code[CPU_BIRTH_MAX];
	uint8_t before[CPU_BIRTH_BEFORE];
	uint32_t fact = 0;
	struct code_at c;
	size_t n, n_before;

	if (!code_ask(s, CODE_BIRTHS, addr, 0, &c, &fact))
		return fact != 0;
	n = code_read(&c, c.vaddr, code, sizeof(code));
	n_before = code_read(&c, c.vaddr - sizeof(before), before, sizeof(before));
	fact = cpu_is_birth(before, n_before, code, n);
	code_remember(&c, fact);
	return fact != 0;
}

/* Part by part; an instruction that lies in two is seen in the second. */
static bool read_varies(const struct code_at *c, size_t size)
{
	uint8_t code[1024];
	size_t n;

	for (size_t at = 0; at < size; at += n - FRAME_OVERLAP) {
		n = code_read(c, c->vaddr + at, code, min_size(sizeof(code), size - at));
		if (n < min_size(sizeof(code), size - at) || cpu_frame_varies(code, n))
			return true;
		if (n == size - at)
			break;
	}
	return false;
}

bool code_frame_varies(struct unwind_space *s, uint64_t addr, uint32_t *budget)
{
	uint32_t fact = true;
	struct code_at c;
	size_t size;

	if (!code_ask(s, CODE_VARYING, addr, 0, &c, &fact))
		return fact != 0;
	size = function_size(&c, CODE_FRAME_MAX);
	if (size / FRAME_BYTES > *budget)
		return true;
	*budget -= (uint32_t)(size / FRAME_BYTES);
	fact = size == 0 || size == CODE_FRAME_MAX || read_varies(&c, size);
	code_remember(&c, fact);
	return fact != 0;
}

bool code_jumps_to(struct unwind_space *s, uint64_t from, uint64_t to)
{
	uint8_t code[CPU_TAIL_MAX];
	uint32_t fact = false;
	struct code_at c;
	size_t n;

	if (!code_ask(s, CODE_JUMPS, from, to - from, &c, &fact))
		return fact != 0;
	n = function_size(&c, sizeof(code));
	if (n > 0)
		n = code_read(&c, c.vaddr, code, n);
	fact = cpu_jumps_to(code, n, (int64_t)(to - from));
	code_remember(&c, fact);
	return fact != 0;
}

bool code_may_call(struct unwind_space *s, uint64_t ra, uint64_t pc, uint64_t max)
{
	const struct map *map;
	const struct space_mapping *m = code_mapping(s, pc, &map), *called;
	uint64_t target, offset;
	const char *name;

	if (!m)
		return false;
	switch (code_call_before(s, ra, &target)) {
	case CODE_CALL_UNKNOWN:
	case CODE_CALL_NONE:
	case CODE_CALL_LAST:
		return false;
	case CODE_CALL_DIRECT:
		if (target <= pc && pc - target < max)
			return true;
		/* One to another function of the same file; or of a PLT. */
		called = code_mapping(s, target, &map);
		if (called && called->image == m->image)
			return false;
		break;
	case CODE_CALL_INDIRECT:
		break;
	}
	return symbols_find(&m->image->symbols, pc - m->bias, &name, &offset) && offset < max;
}
