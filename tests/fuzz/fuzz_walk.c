/*
 * The walk. The input is a header, the registers, the code and the call frame information of an
 * image, and the stack. The target walks the stack twice under one tid, so that the second walk
 * uses the memo of the first, and again with a changed word. Each walk must find the frames that a
 * walk without a memo finds. Walks with a high cost of guesses are not compared: a later walk finds
 * answers about the code that an earlier one has kept, and gets further.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/unwind.h"
#include "lib/unwind/walk/rule_step.h"

#define IMAGE	 UINT64_C(0x400000)
#define STACK	 UINT64_C(0x7fff00000000)
#define SECOND	 UINT64_C(0x10000000)
#define CFI_ADDR 0x10000
#define FRAMES	 64

/*
 * Walks that cost more are not compared. A walk that costs less did not reach WALK_GUESS_COST_MAX
 * in any guess: guesses about so little code cost far less than half of it.
 */
#define GUESS_COST_LIMIT (WALK_GUESS_COST_MAX / 2)

/* a flag that samples do not have */
#define HAS_SECOND 0x80

#define SP_AND_PC (UINT64_C(1) << SAMPLE_X86_64_RSP | UINT64_C(1) << SAMPLE_X86_64_RIP)

/* A file, and code that the program generated. */
static const char maps_text[] = "400000-410000 r-xp 00000000 fe:01 1 /a\n"
				"500000-510000 rwxp 00000000 00:00 0 \n"
				"7fff00000000-7fff00010000 rw-p 00000000 00:00 0 [stack]\n";

struct header {
	uint32_t known;
	uint16_t text_size;
	uint16_t cfi_size;
	uint8_t flags;
	uint8_t is_debug_frame;
	uint16_t changed; /* the word of the stack that is changed later */
	uint32_t reserved;
	uint64_t with;
};

struct input {
	struct header header;
	uint64_t regs[CPU_N_REGS];
	struct fuzz_section sections[2];
	struct fuzz_input stack;
};

static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	const struct input *in = ctx;

	(void)end;
	if (start != IMAGE)
		return -ENOENT;
	*ret_fd = fuzz_elf(in->sections, array_size(in->sections));
	return 0;
}

static const struct unwind_files files = {.image = image};

static void parse(const uint8_t *data, size_t size, struct input *ret)
{
	struct fuzz_input in = {data, size};
	size_t text_size, cfi_size;

	fuzz_take(&in, &ret->header, sizeof(ret->header));
	fuzz_take(&in, ret->regs, sizeof(ret->regs));
	text_size = ret->header.text_size;
	cfi_size = ret->header.cfi_size;
	ret->sections[0] = (struct fuzz_section){
		.name = ".text",
		.type = SHT_PROGBITS,
		.bytes = fuzz_take_bytes(&in, &text_size),
	};
	ret->sections[0].size = text_size;
	ret->sections[1] = (struct fuzz_section){
		.name = ret->header.is_debug_frame & 1 ? ".debug_frame" : ".eh_frame",
		.type = SHT_PROGBITS,
		.addr = CFI_ADDR,
		.bytes = fuzz_take_bytes(&in, &cfi_size),
	};
	ret->sections[1].size = cfi_size;
	ret->stack = in;
}

static struct record_sample *make_sample(const struct input *in, size_t *ret)
{
	size_t size = sizeof(struct record_sample) + in->stack.left;
	struct record_sample *s = calloc(1, size);

	assert(s);
	s->h.tid = 1;
	s->flags = in->header.flags;
	s->arch = SAMPLE_ARCH_X86_64;
	s->regs_known = in->header.known | SP_AND_PC;
	memcpy(s->regs, in->regs, sizeof(in->regs));
	s->stack_addr = STACK;
	s->stack_size = (uint32_t)in->stack.left;
	if (in->stack.left > 0)
		memcpy(s->stack, in->stack.bytes, in->stack.left);
	*ret = size;
	/* The upper half is another stack. */
	if ((s->flags & HAS_SECOND) != 0 && s->stack_size >= 32) {
		const uint64_t addr = SECOND;

		s->stack_size = s->stack_size / 2 & ~7u;
		memcpy(s->stack + s->stack_size, &addr, sizeof(addr));
		s->second_size = (uint32_t)in->stack.left - s->stack_size - 8;
	}
	return s;
}

static void walk(struct unwind_space *space, const struct record_sample *s, size_t size,
		 struct unwind_stack *ret)
{
	assert(unwind_walk(space, s, size, FRAMES, ret) == 0);
	assert(ret->n >= 1 && ret->n <= FRAMES);
	assert((unsigned int)ret->end < UNWIND_END_N);
	assert(ret->shared_n <= ret->n);
	for (size_t i = 0; i < ret->n; i++)
		assert(ret->frames[i].is_leaf == (i == 0));
}

static void assert_same(const struct unwind_stack *a, const struct unwind_stack *b)
{
	if (a->guess_cost > GUESS_COST_LIMIT || b->guess_cost > GUESS_COST_LIMIT)
		return;
	assert(a->n == b->n && a->end == b->end);
	for (size_t i = 0; i < a->n; i++)
		assert(a->frames[i].addr == b->frames[i].addr);
	assert(a->stack_top == b->stack_top && a->second == b->second);
}

static void use(struct unwind_space *space, struct record_sample *s, size_t size,
		const struct header *h)
{
	static struct unwind_stack first, again, other, fresh;

	walk(space, s, size, &first);
	walk(space, s, size, &again);
	assert_same(&first, &again);
	if (s->stack_size >= 8)
		memcpy(s->stack + h->changed % (s->stack_size / 8) * 8, &h->with, sizeof(h->with));
	walk(space, s, size, &other);
	/* The result itself says which frames are shared. */
	if (other.shared_id == again.id)
		for (size_t i = 1; i <= other.shared_n; i++)
			assert(other.frames[other.n - i].addr == again.frames[again.n - i].addr);
	s->h.tid = 2;
	walk(space, s, size, &fresh);
	assert_same(&other, &fresh);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unwind_cache_options options = {.max_bytes = 16u << 20};
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct record_sample *s;
	struct input in;
	size_t sample_size;

	parse(data, size, &in);
	assert(unwind_cache_new(&options, &cache) == 0);
	assert(unwind_space_new(cache, &files, &in, &space) == 0);
	assert(unwind_space_set_maps(space, maps_text, sizeof(maps_text) - 1) == 0);
	s = make_sample(&in, &sample_size);
	use(space, s, sample_size, &in.header);
	free(s);
	unwind_space_free(space);
	unwind_cache_free(cache);
	return 0;
}
