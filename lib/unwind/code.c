#include "lib/unwind/code.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/code_read.h"
#include "lib/unwind/cpu.h"

/* An image that has so many answers forgets them and starts again. */
#define FACTS_MAX 65536

/*
 * What calls holds: one of these, or the target relative to base plus N. LAST:
 * there is no call, and none comes back from what follows.
 */
enum { FACT_NONE, FACT_LAST, FACT_INDIRECT, FACT_N };

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

size_t code_read(struct unwind_space *s, struct space_mapping *m,
		 const struct map *map, uint64_t vaddr, uint8_t *bytes,
		 size_t n)
{
	struct cache_source source = space_source(s, map);
	uint64_t offset;
	uint64_t left;
	int fd;

	if (!image_file_offset(m->image, vaddr, &offset, &left) ||
	    m->image->unread_at == s->cache->clock)
		return 0;
	n = (size_t)min_u64(n, left);
	fd = cache_fd(s->cache, m->image, &source);
	if (fd >= 0 && pread_all(fd, bytes, n, offset) == 0)
		return n;
	/* Not even asked for again in this call. */
	m->image->unread_at = s->cache->clock;
	s->cache->unread_at = s->cache->clock;
	return 0;
}

void code_remember(struct unwind_space *s, struct table *t, uint64_t key,
		   uint32_t fact)
{
	if (s->cache->unread_at == s->cache->clock)
		return;
	if (t->used >= FACTS_MAX)
		table_clear(t);
	if (table_put(t, key, fact) == 0)
		s->cache->grown = true;
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

/* False if the code can't be read. */
static bool read_call(struct unwind_space *s, struct space_mapping *m,
		      const struct map *map, uint64_t vaddr, uint32_t *ret)
{
	uint8_t code[CPU_CALL_MAX];
	uint8_t behind[CPU_LAST_MAX];
	uint32_t fact = FACT_NONE;
	int32_t displacement;
	uint64_t target;
	size_t n;

	n = code_read(s, m, map, vaddr - sizeof(code), code, sizeof(code));
	if (n < sizeof(code))
		return false;
	switch (cpu_call_before(code, n, &displacement)) {
	case CPU_CALL_NONE:
		n = code_read(s, m, map, vaddr, behind, sizeof(behind));
		if (cpu_never_returns(behind, n))
			fact = FACT_LAST;
		break;
	case CPU_CALL_DIRECT:
		target = vaddr + (uint64_t)(int64_t)displacement -
			 m->image->base + FACT_N;
		/* Code does not call itself out of its file. */
		if (target >= FACT_N && target <= UINT32_MAX)
			fact = (uint32_t)target;
		break;
	case CPU_CALL_INDIRECT:
		fact = FACT_INDIRECT;
		break;
	}
	code_remember(s, &m->image->facts[FACTS_CALLS], vaddr, fact);
	*ret = fact;
	return true;
}

enum code_call code_call_before(struct unwind_space *s, uint64_t addr,
				uint64_t *ret_target)
{
	const struct map *map;
	struct space_mapping *m = code_mapping(s, addr - 1, &map);
	uint32_t fact = FACT_NONE;
	uint64_t vaddr;

	if (!m)
		return CODE_CALL_UNKNOWN;
	vaddr = addr - m->bias;
	if (!table_get(&m->image->facts[FACTS_CALLS], vaddr, &fact) &&
	    !read_call(s, m, map, vaddr, &fact))
		return CODE_CALL_UNKNOWN;
	if (fact == FACT_LAST)
		return CODE_CALL_LAST;
	if (fact == FACT_NONE)
		return CODE_CALL_NONE;
	if (fact == FACT_INDIRECT)
		return CODE_CALL_INDIRECT;
	*ret_target = m->bias + m->image->base + (fact - FACT_N);
	return CODE_CALL_DIRECT;
}

static uint32_t facts_at(struct unwind_space *s, uint64_t addr)
{
	const struct map *map;
	struct space_mapping *m = code_mapping(s, addr, &map);
	uint8_t code[CPU_PROLOGUE_MAX];
	uint32_t fact = 0;
	uint32_t size;
	size_t n;

	if (!m)
		return 0;
	if (table_get(&m->image->facts[FACTS_STARTS], addr - m->bias, &fact))
		return fact;
	n = code_read(s, m, map, addr - m->bias, code, sizeof(code));
	if (cpu_is_sigreturn(code, n))
		fact |= FACT_SIGRETURN;
	if (cpu_is_stub(code, n))
		fact |= FACT_STUB;
	if (cpu_frame_size(code, n, &size) && size % 8 == 0 &&
	    size / 8 <= UINT32_MAX >> FACT_FRAME_SHIFT)
		fact |= FACT_HAS_FRAME | size / 8 << FACT_FRAME_SHIFT;
	code_remember(s, &m->image->facts[FACTS_STARTS], addr - m->bias, fact);
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

/* How many bytes a function has from its start on; max: so many or more. */
static size_t function_size(struct space_mapping *m, uint64_t vaddr, size_t max)
{
	const struct rows *rows = image_rows(m->image, vaddr);
	size_t size = 0;
	uint64_t start;

	while (size < max) {
		size_t middle = max - (max - size) / 2;

		if (rows_function(rows, vaddr + middle - 1, &start) &&
		    start == vaddr)
			size = middle;
		else
			max = middle - 1;
	}
	return size;
}

bool code_is_birth(struct unwind_space *s, uint64_t addr)
{
	const struct map *map;
	struct space_mapping *m = code_mapping(s, addr, &map);
	uint8_t code[CPU_BIRTH_MAX];
	uint8_t before[CPU_BIRTH_BEFORE];
	uint32_t fact;
	size_t n, n_before;

	if (!m ||
	    table_get(&m->image->facts[FACTS_PLAIN], addr - m->bias, &fact))
		return false;
	n = code_read(s, m, map, addr - m->bias, code, sizeof(code));
	n_before = code_read(s, m, map, addr - m->bias - sizeof(before), before,
			     sizeof(before));
	if (cpu_is_birth(before, n_before, code, n))
		return true;
	code_remember(s, &m->image->facts[FACTS_PLAIN], addr - m->bias, 0);
	return false;
}

/* The first bytes of a function, no further than its end. */
static size_t read_function(struct unwind_space *s, struct space_mapping *m,
			    const struct map *map, uint64_t vaddr,
			    uint8_t *bytes, size_t n)
{
	n = function_size(m, vaddr, n);
	return n > 0 ? code_read(s, m, map, vaddr, bytes, n) : 0;
}

/* Part by part; an instruction that lies in two is seen in the second. */
static bool read_varies(struct unwind_space *s, struct space_mapping *m,
			const struct map *map, uint64_t vaddr, size_t size)
{
	uint8_t code[1024];
	size_t n;

	for (size_t at = 0; at < size; at += n - FRAME_OVERLAP) {
		n = code_read(s, m, map, vaddr + at, code,
			      min_size(sizeof(code), size - at));
		if (n < min_size(sizeof(code), size - at) ||
		    cpu_frame_varies(code, n))
			return true;
		if (n == size - at)
			break;
	}
	return false;
}

bool code_frame_varies(struct unwind_space *s, uint64_t addr, uint32_t *budget)
{
	const struct map *map;
	struct space_mapping *m = code_mapping(s, addr, &map);
	const uint64_t vaddr = m ? addr - m->bias : 0;
	uint32_t fact;
	size_t size;

	if (!m)
		return true;
	if (table_get(&m->image->facts[FACTS_VARYING], vaddr, &fact))
		return fact != 0;
	size = function_size(m, vaddr, CODE_FRAME_MAX);
	if (size / FRAME_BYTES > *budget)
		return true;
	*budget -= (uint32_t)(size / FRAME_BYTES);
	fact = size == 0 || size == CODE_FRAME_MAX ||
	       read_varies(s, m, map, vaddr, size);
	code_remember(s, &m->image->facts[FACTS_VARYING], vaddr, fact);
	return fact != 0;
}

bool code_jumps_to(struct unwind_space *s, uint64_t from, uint64_t to)
{
	const struct map *map;
	struct space_mapping *m = code_mapping(s, from, &map);
	uint8_t code[CPU_TAIL_MAX];
	uint64_t base;
	uint32_t fact;
	uint64_t key;
	size_t n;

	if (!m)
		return false;
	base = m->bias + m->image->base;
	if (from - base > UINT32_MAX || to - base > UINT32_MAX)
		return false;
	key = (from - base) << 32 | (to - base);
	if (table_get(&m->image->facts[FACTS_JUMPS], key, &fact))
		return fact != 0;
	n = read_function(s, m, map, from - m->bias, code, sizeof(code));
	fact = cpu_jumps_to(code, n, (int64_t)(to - from));
	code_remember(s, &m->image->facts[FACTS_JUMPS], key, fact);
	return fact != 0;
}

bool code_may_call(struct unwind_space *s, uint64_t ra, uint64_t pc,
		   uint64_t max)
{
	const struct map *map;
	struct space_mapping *m = code_mapping(s, pc, &map);
	const struct map *target_map;
	struct space_mapping *target_m;
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
		target_m = code_mapping(s, target, &target_map);
		if (target_m && target_m->image == m->image)
			return false;
		break;
	case CODE_CALL_INDIRECT:
		break;
	}
	return symbols_find(&m->image->symbols, pc - m->bias, &name, &offset) &&
	       offset < max;
}
