#include "lib/unwind/unwind.h"

#include <assert.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/space/space.h"
#include "lib/unwind/walk/walk.h"

#define SP_AND_PC (UINT64_C(1) << CPU_SP | UINT64_C(1) << CPU_PC)
#define ALL_REGS  ((UINT64_C(1) << CPU_N_REGS) - 1)

/* Returns true if addr + size does not overflow. */
static bool is_range(const struct unwind_bytes *b)
{
	uint64_t end;

	return !__builtin_add_overflow(b->addr, b->size, &end);
}

/* Reads the second range, which follows the first one, aligned to 8 bytes. size is that of the
 * record. */
static int read_second(const struct record_sample *record, size_t size, size_t stack_size,
		       size_t second_size, struct unwind_bytes *ret)
{
	const uint8_t *start = (const uint8_t *)record;
	size_t at = sizeof(*record) + ((stack_size + 7) & ~(size_t)7);
	struct sample_second second;

	if (at + sizeof(second) > size || second_size > size - at - sizeof(second))
		return -EINVAL;
	memcpy(&second, start + at, sizeof(second));
	ret->bytes = start + at + sizeof(second);
	ret->addr = second.addr;
	ret->size = second_size;
	return is_range(ret) ? 0 : -EINVAL;
}

int unwind_sample_read(const struct record_sample *record, size_t size, struct unwind_sample *ret)
{
	struct record_sample fixed;
	int r = 0;

	if (size < sizeof(fixed))
		return -EINVAL;
	memcpy(&fixed, record, sizeof(fixed));
	/* Keeps the compiler from reading a field of the record a second time. */
	__asm__ volatile("" : "+m"(fixed));
	*ret = (struct unwind_sample){
		.tid = fixed.h.tid,
		.flags = fixed.flags,
		.time_ns = fixed.h.time_ns,
		.regs_known = fixed.regs_known,
		.stack = {record->stack, fixed.stack_addr, fixed.stack_size},
		.known = fixed.known,
	};
	memcpy(ret->regs, fixed.regs, sizeof(ret->regs));
	if (fixed.stack_size > size - sizeof(fixed) || !is_range(&ret->stack) ||
	    fixed.arch != CPU_SAMPLE_ARCH || (fixed.regs_known & SP_AND_PC) != SP_AND_PC)
		return -EINVAL;
	if (fixed.second_size > 0)
		r = read_second(record, size, fixed.stack_size, fixed.second_size, &ret->second);
	return r;
}

/* Sets w and f to the leaf of the sample. known: the registers to use. */
static void start_at_leaf(const struct unwind_sample *sample, uint64_t known, bool all_saved,
			  struct walk *w, struct walk_frame *f)
{
	*w = (struct walk){
		.space = w->space,
		.stack =
			{
				.bytes = sample->stack.bytes,
				.lo = sample->stack.addr,
				.hi = sample->stack.addr + sample->stack.size,
				.second = sample->second.bytes,
				.second_lo = sample->second.addr,
				.second_hi = sample->second.addr + sample->second.size,
			},
		.capped = (sample->flags & SAMPLE_CAPPED) != 0,
		.second_capped = (sample->flags & SAMPLE_SECOND_CAPPED) != 0,
		.all_saved = all_saved,
	};
	*f = (struct walk_frame){
		.regs.known = known,
		.addr = sample->regs[CPU_PC],
		.is_leaf = true,
	};
	memcpy(f->regs.r, sample->regs, sizeof(f->regs.r));
}

/*
 * Walks with these registers; a second time with all_saved if an unknown register ended the walk.
 */
static void walk_from(const struct unwind_sample *sample, uint64_t known, struct walk *w,
		      size_t max_frames, struct unwind_stack *ret)
{
	struct walk_frame f;

	start_at_leaf(sample, known, false, w, &f);
	walk_to_end(w, &f, sample->tid, max_frames, ret);
	if (ret->end != UNWIND_END_UNKNOWN_REGISTER || w->guess_cost == WALK_GUESS_COST_MAX)
		return;
	start_at_leaf(sample, known, true, w, &f);
	walk_to_end(w, &f, sample->tid, max_frames, ret);
}

static bool is_good(enum unwind_end end)
{
	return end == UNWIND_END_ROOT || end == UNWIND_END_CAPPED || end == UNWIND_END_MAX_FRAMES;
}

void unwind_walk_sample(struct unwind_space *s, const struct unwind_sample *sample,
			size_t max_frames, struct unwind_stack *ret)
{
	struct walk w = {.space = s};

	assert(max_frames >= 1 && max_frames <= UNWIND_FRAMES_MAX);
	cache_begin(s->cache);
	space_begin(s);
	versions_settle(s);
	ret->guess_cost = 0;
	walk_from(sample, sample->regs_known & ALL_REGS, &w, max_frames, ret);
	/*
	 * Registers remembered from an earlier stop may be wrong. If the walk with them does not
	 * reach the root, walk again with sp and pc alone.
	 */
	if (sample->flags & SAMPLE_REMEMBERED && !is_good(ret->end) &&
	    w.guess_cost < WALK_GUESS_COST_MAX)
		walk_from(sample, SP_AND_PC, &w, max_frames, ret);
	versions_mark_frames(s, ret);
	cache_end(s->cache);
}

bool unwind_lacks_return_address(const struct unwind_sample *sample,
				 const struct unwind_stack *stack, uint64_t *ret_sp,
				 uint64_t *ret_pc)
{
	if (!CPU_LINK_REGISTER || (sample->regs_known & UINT64_C(1) << CPU_RA) != 0 ||
	    stack->n > 1 || stack->end != UNWIND_END_UNKNOWN_REGISTER)
		return false;
	*ret_sp = sample->regs[CPU_SP];
	*ret_pc = sample->regs[CPU_PC];
	return true;
}

int unwind_walk(struct unwind_space *s, const struct record_sample *record, size_t size,
		size_t max_frames, struct unwind_stack *ret)
{
	struct unwind_sample sample;
	int r = unwind_sample_read(record, size, &sample);

	if (r == 0)
		unwind_walk_sample(s, &sample, max_frames, ret);
	return r;
}
