#include <string.h>

#include "lib/unwind/space/code.h"
#include "lib/unwind/space/code_read.h"
#include "lib/unwind/cpu.h"
#include "lib/unwind/x86_64/x86_64_way.h"

/*
 * What ways holds: these bits, the first word, and how many the second one is
 * below it; 0: it is not restored.
 */
#define WAY_FOUND    1u
#define WAY_HAS_CALL 2u
#define WAY_EXITS    4u
#define WAY_RA_SHIFT 4
#define WAY_RA_MASK  0xffffu
#define WAY_FP_SHIFT 20
#define WAY_FP_MASK  0xffu
_Static_assert(X86_64_WAY_MAX / 8 - 1 <= WAY_RA_MASK, "it fits");
_Static_assert(X86_64_WAY_FP_MAX / 8 - 1 <= WAY_FP_MASK, "it fits");

/* printf's longest function has 1,500 instructions. */
#define WAY_STEPS_MAX 4096u
/* What a way, and each of its instructions, costs of a budget. */
#define WAY_START 128u
#define WAY_STEP  16u

static size_t read_way(void *ctx, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	return code_read(ctx, vaddr, bytes, n);
}

static struct x86_64_code code_of(struct code_at *c, uint32_t budget)
{
	return (struct x86_64_code){
		.read = read_way,
		.ctx = c,
		.steps_max = (uint32_t)min_u64(WAY_STEPS_MAX, budget / WAY_STEP),
	};
}

/*
 * Pays for what was read, and keeps the answer. Where less was read than may be
 * there may be one another time.
 */
static void finish(const struct code_at *c, const struct x86_64_code *code, uint32_t fact,
		   uint32_t *budget)
{
	*budget -= (uint32_t)min_u64(*budget, WAY_START + code->steps * WAY_STEP);
	if (fact != 0 || code->steps < code->steps_max || code->steps_max == WAY_STEPS_MAX)
		code_remember(c, fact);
}

/*
 * Does the code call exit() with what main has returned, or end a thread
 * with what its function has? Nothing that is known comes behind that.
 */
static bool does_exit(const struct code_at *c)
{
	static const char *const names[] = {"exit", "_exit", "pthread_exit", "__pthread_exit"};
	uint8_t code[8];
	const char *name;
	uint64_t target, offset;
	int32_t distance;
	size_t pos;

	if (code_read(c, c->vaddr, code, sizeof(code)) < sizeof(code))
		return false;
	pos = code[0] == 0x48; /* mov %eax,%edi or %rax,%rdi; call */
	if (code[pos] != 0x89 || code[pos + 1] != 0xc7 || code[pos + 2] != 0xe8)
		return false;
	memcpy(&distance, code + pos + 3, sizeof(distance));
	target = c->vaddr + pos + 7 + (uint64_t)(int64_t)distance;
	if (!symbols_find(&c->mapping->image->symbols, target, &name, &offset) || offset != 0)
		return false;
	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static uint32_t fact_of_way(const struct x86_64_way *way)
{
	uint32_t fp = way->fp == X86_64_WAY_FP_SAME ? 0 : (way->ra - way->fp) / 8;

	return WAY_FOUND | (way->has_call ? WAY_HAS_CALL : 0) | way->ra / 8 << WAY_RA_SHIFT |
	       fp << WAY_FP_SHIFT;
}

static bool way_of_fact(uint32_t fact, struct code_way *ret)
{
	const uint32_t fp = fact >> WAY_FP_SHIFT & WAY_FP_MASK;
	const uint32_t ra = fact >> WAY_RA_SHIFT & WAY_RA_MASK;

	*ret = (struct code_way){
		.ra = 8 * ra,
		.fp = fp > 0 ? 8 * (ra - fp) : X86_64_WAY_FP_SAME,
		.has_call = (fact & WAY_HAS_CALL) != 0,
		.exits = (fact & WAY_EXITS) != 0,
	};
	return (fact & WAY_FOUND) != 0;
}

bool code_way_back(struct unwind_space *s, uint64_t addr, uint32_t *budget, struct code_way *ret)
{
	struct x86_64_code code;
	struct x86_64_way way;
	uint32_t fact = 0;
	struct code_at c;

	if (!CPU_LINK_REGISTER && code_ask(s, CODE_WAYS, addr, 0, &c, &fact)) {
		code = code_of(&c, *budget);
		if (x86_64_way_back(&code, c.vaddr, &way))
			fact = fact_of_way(&way);
		if (does_exit(&c))
			fact |= WAY_EXITS;
		finish(&c, &code, fact, budget);
	}
	return way_of_fact(fact, ret);
}

bool code_way_there(struct unwind_space *s, uint64_t from, uint64_t to, uint32_t *budget,
		    struct code_way *ret)
{
	struct x86_64_code code;
	struct x86_64_way way;
	uint32_t fact = 0;
	struct code_at c;

	if (!CPU_LINK_REGISTER && code_ask(s, CODE_HEIGHTS, from, to - from, &c, &fact)) {
		code = code_of(&c, *budget);
		if (x86_64_way_there(&code, c.vaddr, c.vaddr + (to - from), &way))
			fact = fact_of_way(&way);
		finish(&c, &code, fact, budget);
	}
	return way_of_fact(fact, ret);
}

bool code_installs(struct unwind_space *s, uint64_t addr)
{
	uint8_t code[X86_64_INSTALLS_MAX];
	uint32_t fact = false;
	struct code_at c;

	if (code_ask(s, CODE_INSTALLS, addr, 0, &c, &fact)) {
		fact = x86_64_installs(code, code_read(&c, c.vaddr, code, sizeof(code)));
		code_remember(&c, fact);
	}
	return fact != 0;
}
