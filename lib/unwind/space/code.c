#include "lib/unwind/space/code.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/cpu/x86_64_path.h"

/* Answers kept for one image. Above that all of them are forgotten. */
#define ANSWERS_MAX (256u * 1024)

/* The questions whose answers are kept with the image. An answer is a word. */
enum code_question {
	CODE_CALLS,	       /* the call before a return address */
	CODE_STARTS,	       /* what the code at an address is */
	CODE_VARYING,	       /* does the frame size of a function vary? */
	CODE_JUMPS,	       /* does a function jump to another one? */
	CODE_TAILS,	       /* the target of a function that is only a jump */
	CODE_FUNCTIONS,	       /* the start of a function without a symbol */
	CODE_PATHS_TO_RET,     /* the path from an address to a ret */
	CODE_PATHS_FROM_START, /* the path from a function's start to an instruction */
	CODE_INSTALLS,	       /* does the code install an exception handler? */
	CODE_THREAD_STARTS,    /* is a new thread there? */
};

/* An address, and the question that is asked about it. */
struct code_query {
	struct unwind_space *space;
	struct space_mapping *mapping;
	uint64_t vaddr;
	uint64_t key; /* of the answer in image.answers */
};

/*
 * The answers to CODE_CALLS. Larger ones are CALL_N plus the target, relative to the image's
 * base.
 */
enum { CALL_UNKNOWN, CALL_NONE, CALL_NORETURN, CALL_INDIRECT, CALL_N };

/* Bits of a key for the distance of two addresses: more than parts of a function are apart. */
#define DISTANCE_BITS 28

/* The answer to CODE_STARTS: these bits, and the frame size in words. */
#define START_IS_SIGRETURN 1u
#define START_HAS_FRAME	   2u
#define START_IS_STUB	   4u
#define START_FRAME_SHIFT  3

/*
 * Bytes by which parts of a function overlap: at least the length of an instruction that changes
 * the stack pointer, and a multiple of their alignment.
 */
#define FRAME_OVERLAP 8
/* Bytes that are read for one unit of a budget. */
#define FRAME_BYTES 4

/*
 * Reads up to n bytes of code at vaddr from the image's file. Returns how many were read. If the
 * file cannot be opened or read, this returns 0, and does not request the file again during the
 * public function that is running.
 */
static size_t code_read(const struct code_query *c, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	struct unwind_cache *cache = c->space->cache;
	struct file_source source = space_source(c->space, &c->mapping->file);
	struct image *image = c->mapping->image;
	uint64_t offset;
	uint64_t left;
	int fd;

	if (!image_file_offset(image, vaddr, &offset, &left) || image->unread_at == cache->clock)
		return 0;
	n = (size_t)min_u64(n, left);
	fd = cache_fd(cache, image, &source);
	if (fd >= 0 && elf_file_pread(fd, bytes, n, offset) == 0)
		return n;
	image->unread_at = cache->clock;
	cache->unread_at = cache->clock;
	return 0;
}

/*
 * Keeps an answer. Answers are not kept during a public function in which some code could not be
 * read: that may be so for this target only, but all targets share the answers.
 */
static void keep_answer(const struct code_query *c, uint32_t answer)
{
	struct unwind_cache *cache = c->space->cache;
	struct table *t = &c->mapping->image->answers;

	if (cache->unread_at == cache->clock)
		return;
	if (t->used >= ANSWERS_MAX)
		table_clear(t);
	if (table_put(t, c->key, answer) == 0)
		cache->grown = true;
}

/* Returns the mapping of addr if its image can be read, otherwise NULL. */
static struct space_mapping *code_mapping(struct unwind_space *s, uint64_t addr)
{
	struct space_mapping *m = space_certain_mapping(s, addr);

	if (!m || !m->image || m->lost)
		return NULL;
	cache_mark_file(s->cache, m->image);
	return m;
}

/*
 * Looks up the answer about addr or, for a question about two addresses, about addr and addr +
 * distance. Returns true if there is no answer yet: the caller finds it with *ret and passes it
 * to keep_answer(). Otherwise *answer is the kept answer, or unchanged if the image cannot be read.
 *
 * A key has 32 bits for the address and 28 for the distance. Beyond the first 4 GiB of an image,
 * or for addresses 128 MiB apart, there is no answer.
 */
static bool needs_answer(struct unwind_space *s, enum code_question question, uint64_t addr,
			 uint64_t distance, struct code_query *ret, uint32_t *answer)
{
	const uint64_t half = UINT64_C(1) << (DISTANCE_BITS - 1);
	struct space_mapping *m = code_mapping(s, addr);
	uint64_t at;

	if (!m)
		return false;
	at = addr - m->bias - m->image->base;
	if (at > UINT32_MAX || distance + half >= 2 * half)
		return false;
	*ret = (struct code_query){
		.space = s,
		.mapping = m,
		.vaddr = addr - m->bias,
		.key = ((uint64_t)question << 32 | at) << DISTANCE_BITS |
		       (distance & (2 * half - 1)),
	};
	return !table_get(&m->image->answers, ret->key, answer);
}

/* Finds the answer to CODE_CALLS. Returns false if the code cannot be read. */
static bool read_call(const struct code_query *c, uint32_t *ret)
{
	const uint64_t behind_it = c->vaddr + 1;
	uint8_t code[CPU_CALL_MAX];
	uint8_t behind[CPU_NORETURN_MAX];
	int32_t displacement;
	uint64_t target;
	size_t n;

	n = code_read(c, behind_it - sizeof(code), code, sizeof(code));
	if (n < sizeof(code))
		return false;
	*ret = CALL_NONE;
	switch (cpu_call_before(code, n, &displacement)) {
	case CPU_CALL_NONE:
		n = code_read(c, behind_it, behind, sizeof(behind));
		if (cpu_never_returns(behind, n))
			*ret = CALL_NORETURN;
		break;
	case CPU_CALL_DIRECT:
		target = behind_it + (uint64_t)(int64_t)displacement - c->mapping->image->base +
			 CALL_N;
		/* A direct call stays within its file. */
		if (target >= CALL_N && target <= UINT32_MAX)
			*ret = (uint32_t)target;
		break;
	case CPU_CALL_INDIRECT:
		*ret = CALL_INDIRECT;
		break;
	}
	return true;
}

enum code_call code_call_before(struct unwind_space *s, uint64_t addr, uint64_t *ret_target)
{
	uint32_t answer = CALL_UNKNOWN;
	struct code_query c;

	if (needs_answer(s, CODE_CALLS, addr - 1, 0, &c, &answer) && read_call(&c, &answer))
		keep_answer(&c, answer);
	switch (answer) {
	case CALL_UNKNOWN:
		return CODE_CALL_UNKNOWN;
	case CALL_NONE:
		return CODE_CALL_NONE;
	case CALL_NORETURN:
		return CODE_CALL_NORETURN;
	case CALL_INDIRECT:
		return CODE_CALL_INDIRECT;
	}
	*ret_target = c.mapping->bias + c.mapping->image->base + (answer - CALL_N);
	return CODE_CALL_DIRECT;
}

/* Returns the answer to CODE_STARTS for addr. */
static uint32_t start_answer(struct unwind_space *s, uint64_t addr)
{
	uint8_t code[CPU_PROLOGUE_MAX];
	uint32_t answer = 0;
	struct code_query c;
	uint32_t size;
	size_t n;

	if (!needs_answer(s, CODE_STARTS, addr, 0, &c, &answer))
		return answer;
	n = code_read(&c, c.vaddr, code, sizeof(code));
	if (cpu_is_sigreturn(code, n))
		answer |= START_IS_SIGRETURN;
	if (cpu_is_stub(code, n))
		answer |= START_IS_STUB;
	if (cpu_frame_size(code, n, &size) && size % 8 == 0 &&
	    size / 8 <= UINT32_MAX >> START_FRAME_SHIFT)
		answer |= START_HAS_FRAME | size / 8 << START_FRAME_SHIFT;
	keep_answer(&c, answer);
	return answer;
}

bool code_frame_size(struct unwind_space *s, uint64_t addr, uint32_t *ret_size)
{
	uint32_t answer = start_answer(s, addr);

	*ret_size = 8 * (answer >> START_FRAME_SHIFT);
	return (answer & START_HAS_FRAME) != 0;
}

bool code_is_stub(struct unwind_space *s, uint64_t addr)
{
	return (start_answer(s, addr) & START_IS_STUB) != 0;
}

bool code_is_sigreturn(struct unwind_space *s, uint64_t addr)
{
	return (start_answer(s, addr) & START_IS_SIGRETURN) != 0;
}

/* Returns the size of the function at c in bytes, at most max. */
static size_t function_size(const struct code_query *c, size_t max)
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

bool code_is_thread_start(struct unwind_space *s, uint64_t addr)
{
	uint8_t code[CPU_THREAD_START_MAX];
	uint8_t before[CPU_THREAD_START_BEFORE];
	uint32_t answer = 0;
	struct code_query c;
	size_t n, n_before;

	if (!needs_answer(s, CODE_THREAD_STARTS, addr, 0, &c, &answer))
		return answer != 0;
	n = code_read(&c, c.vaddr, code, sizeof(code));
	n_before = code_read(&c, c.vaddr - sizeof(before), before, sizeof(before));
	answer = cpu_is_thread_start(before, n_before, code, n);
	keep_answer(&c, answer);
	return answer != 0;
}

/* Reads the function in overlapping parts, so that no instruction is split in both. */
static bool read_varies(const struct code_query *c, size_t size)
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
	uint32_t answer = true;
	struct code_query c;
	size_t size;

	if (!needs_answer(s, CODE_VARYING, addr, 0, &c, &answer))
		return answer != 0;
	size = function_size(&c, CODE_FRAME_MAX);
	if (size / FRAME_BYTES > *budget)
		return true;
	*budget -= (uint32_t)(size / FRAME_BYTES);
	answer = size == 0 || size == CODE_FRAME_MAX || read_varies(&c, size);
	keep_answer(&c, answer);
	return answer != 0;
}

bool code_jumps_to(struct unwind_space *s, uint64_t from, uint64_t to)
{
	uint8_t code[CPU_TAIL_MAX];
	uint32_t answer = false;
	struct code_query c;
	size_t n;

	if (!needs_answer(s, CODE_JUMPS, from, to - from, &c, &answer))
		return answer != 0;
	n = function_size(&c, sizeof(code));
	if (n > 0)
		n = code_read(&c, c.vaddr, code, n);
	answer = cpu_jumps_to(code, n, (int64_t)(to - from));
	keep_answer(&c, answer);
	return answer != 0;
}

bool code_may_call(struct unwind_space *s, uint64_t ra, uint64_t pc, uint64_t max)
{
	const struct space_mapping *m = code_mapping(s, pc), *called;
	uint64_t target, offset;
	const char *name;

	if (!m)
		return false;
	switch (code_call_before(s, ra, &target)) {
	case CODE_CALL_UNKNOWN:
	case CODE_CALL_NONE:
	case CODE_CALL_NORETURN:
		return false;
	case CODE_CALL_DIRECT:
		if (target <= pc && pc - target < max)
			return true;
		/* A call to another function of the same file, or to a PLT. */
		called = code_mapping(s, target);
		if (called && called->image == m->image)
			return false;
		break;
	case CODE_CALL_INDIRECT:
		break;
	}
	return symbols_find(&m->image->symbols, pc - m->bias, &name, &offset) && offset < max;
}

/*
 * The size of a function that is only a jump, with or without endbr64. Images with more symbols
 * than a C library are not searched.
 */
#define TAIL_SIZE    5
#define TAIL_MAX     9
#define SYMBOLS_SEEN 8192
/* The cost of a symbol, in units of a budget. */
#define SYMBOL_COST 4

/* Returns the target of a function that is only a jump, relative to base. 0: it is another
 * function. */
static uint32_t tail_of(const struct code_query *c, const struct symbol *symbol)
{
	uint8_t code[TAIL_MAX];
	struct code_query tail;
	uint32_t answer = 0;
	int32_t distance;
	size_t n;

	if (!needs_answer(c->space, CODE_TAILS,
			  c->mapping->bias + c->mapping->image->base + symbol->start, 0, &tail,
			  &answer))
		return answer;
	n = code_read(&tail, tail.vaddr, code, symbol->size);
	if (n == symbol->size && code[n - TAIL_SIZE] == 0xe9) {
		memcpy(&distance, code + n - 4, sizeof(distance));
		answer = symbol->start + (uint32_t)n + (uint32_t)distance;
	}
	keep_answer(&tail, answer);
	return answer;
}

/*
 * Returns the last target at or before c of the functions that are only a jump: the start of a
 * static function with an exported name (malloc of musl). 0: there is none near enough.
 */
static uint32_t start_by_tail(const struct code_query *c)
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
	return at - best < CODE_FUNCTION_MAX ? best : 0;
}

uint64_t code_function(struct unwind_space *s, uint64_t addr, uint32_t *budget)
{
	const struct space_mapping *m = code_mapping(s, addr);
	const struct image *image = m ? m->image : NULL;
	struct code_query c;
	const char *name;
	uint64_t offset;
	uint32_t answer = 0;
	uint32_t cost;

	if (!m)
		return 0;
	if (symbols_find(&image->symbols, addr - m->bias, &name, &offset))
		return addr - offset;
	if (!image->symbols_tried || image->symbols.n > SYMBOLS_SEEN)
		return 0;
	if (needs_answer(s, CODE_FUNCTIONS, addr, 0, &c, &answer)) {
		cost = (uint32_t)image->symbols.n * SYMBOL_COST;
		if (cost > *budget)
			return 0;
		*budget -= cost;
		answer = start_by_tail(&c);
		keep_answer(&c, answer);
	}
	return answer > 0 ? m->bias + image->base + answer : 0;
}

/*
 * The answer to CODE_PATHS_TO_RET and CODE_PATHS_FROM_START: these bits, the offset of the return
 * address in words, and how many words below it the frame pointer is (0: it is not restored). If
 * the base is not the stack pointer, the lowest bits of the return address's field have its offset,
 * and the others the number of the register, or the offset of the word.
 */
#define PATH_FOUND	1u
#define PATH_HAS_CALL	2u
#define PATH_EXITS	4u
#define PATH_RA_SHIFT	4
#define PATH_RA_MASK	0xffffu
#define PATH_FP_SHIFT	20
#define PATH_FP_MASK	0xffu
#define PATH_BASE_SHIFT 28
#define PATH_POPS_BITS	4
#define PATH_POPS_MASK	((1u << PATH_POPS_BITS) - 1)
_Static_assert(X86_64_PATH_MAX / 8 - 1 <= PATH_RA_MASK, "it fits");
_Static_assert(X86_64_PATH_FP_MAX / 8 - 1 <= PATH_FP_MASK, "it fits");
_Static_assert(X86_64_PATH_POPS_MAX / 8 <= PATH_POPS_MASK, "it fits");
_Static_assert(X86_64_PATH_BASE_MAX / 8 - 1 <= PATH_RA_MASK >> PATH_POPS_BITS, "it fits");

/* The longest function of printf has 1,500 instructions. */
#define PATH_STEPS_MAX 4096u
/* The cost of a path, and of each of its instructions, in units of a budget. */
#define PATH_START 128u
#define PATH_STEP  16u

static size_t read_code(void *ctx, uint64_t vaddr, uint8_t *bytes, size_t n)
{
	return code_read(ctx, vaddr, bytes, n);
}

static struct x86_64_code code_of(struct code_query *c, uint32_t budget)
{
	return (struct x86_64_code){
		.read = read_code,
		.ctx = c,
		.steps_max = (uint32_t)min_u64(PATH_STEPS_MAX, budget / PATH_STEP),
	};
}

/*
 * Subtracts the cost, and keeps the answer. "No path" is not kept if the budget was too small for
 * a full search.
 */
static void finish(const struct code_query *c, const struct x86_64_code *code, uint32_t answer,
		   uint32_t *budget)
{
	*budget -= (uint32_t)min_u64(*budget, PATH_START + code->steps * PATH_STEP);
	if (answer != 0 || code->steps < code->steps_max || code->steps_max == PATH_STEPS_MAX)
		keep_answer(c, answer);
}

/*
 * Returns true if the code passes main's result to exit(), or a thread function's result to the end
 * of the thread: the frame is the root.
 */
static bool does_exit(const struct code_query *c)
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

static uint32_t answer_of_path(const struct x86_64_path *path)
{
	uint32_t fp = path->fp == X86_64_PATH_FP_SAME ? 0 : (path->ra - path->fp) / 8;
	uint32_t ra = path->ra / 8;

	switch (path->base) {
	case X86_64_BASE_SP:
		break;
	case X86_64_BASE_WORD:
		ra |= path->base_at / 8 << PATH_POPS_BITS;
		break;
	case X86_64_BASE_VALUE:
		ra |= path->base_at << PATH_POPS_BITS;
		break;
	}
	return PATH_FOUND | (path->has_call ? PATH_HAS_CALL : 0) | ra << PATH_RA_SHIFT |
	       fp << PATH_FP_SHIFT | (uint32_t)path->base << PATH_BASE_SHIFT;
}

static bool path_of_answer(uint32_t answer, struct code_path *ret)
{
	const uint32_t fp = answer >> PATH_FP_SHIFT & PATH_FP_MASK;
	uint32_t ra = answer >> PATH_RA_SHIFT & PATH_RA_MASK;

	*ret = (struct code_path){
		.has_call = (answer & PATH_HAS_CALL) != 0,
		.exits = (answer & PATH_EXITS) != 0,
		.base = (enum x86_64_base)(answer >> PATH_BASE_SHIFT),
	};
	switch (ret->base) {
	case X86_64_BASE_SP:
		break;
	case X86_64_BASE_WORD:
		ret->base_at = 8 * (ra >> PATH_POPS_BITS);
		ra &= PATH_POPS_MASK;
		break;
	case X86_64_BASE_VALUE:
		ret->base_at = ra >> PATH_POPS_BITS;
		ra &= PATH_POPS_MASK;
		break;
	}
	ret->ra = 8 * ra;
	ret->fp = fp > 0 ? 8 * (ra - fp) : X86_64_PATH_FP_SAME;
	return (answer & PATH_FOUND) != 0;
}

bool code_path_to_ret(struct unwind_space *s, uint64_t addr, uint32_t *budget,
		      struct code_path *ret)
{
	struct x86_64_code code;
	struct x86_64_path path;
	uint32_t answer = 0;
	struct code_query c;

	if (!CPU_LINK_REGISTER && needs_answer(s, CODE_PATHS_TO_RET, addr, 0, &c, &answer)) {
		code = code_of(&c, *budget);
		if (x86_64_path_to_ret(&code, c.vaddr, &path))
			answer = answer_of_path(&path);
		if (does_exit(&c))
			answer |= PATH_EXITS;
		finish(&c, &code, answer, budget);
	}
	return path_of_answer(answer, ret);
}

bool code_path_from_start(struct unwind_space *s, uint64_t from, uint64_t to, uint32_t *budget,
			  struct code_path *ret)
{
	struct x86_64_code code;
	struct x86_64_path path;
	uint32_t answer = 0;
	struct code_query c;

	if (!CPU_LINK_REGISTER &&
	    needs_answer(s, CODE_PATHS_FROM_START, from, to - from, &c, &answer)) {
		code = code_of(&c, *budget);
		if (x86_64_path_from_start(&code, c.vaddr, c.vaddr + (to - from), &path))
			answer = answer_of_path(&path);
		finish(&c, &code, answer, budget);
	}
	return path_of_answer(answer, ret);
}

bool code_installs_handler(struct unwind_space *s, uint64_t addr)
{
	uint8_t code[X86_64_INSTALLS_MAX];
	uint32_t answer = false;
	struct code_query c;

	if (needs_answer(s, CODE_INSTALLS, addr, 0, &c, &answer)) {
		answer = x86_64_installs_handler(code, code_read(&c, c.vaddr, code, sizeof(code)));
		keep_answer(&c, answer);
	}
	return answer != 0;
}
