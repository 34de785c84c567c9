#include "lib/capture/snapshot.h"

#include <stdbool.h>
#include <string.h>

#include "lib/capture/arch.h"
#include "lib/capture/memory.h"

static uint64_t stack_start(uint64_t sp)
{
	return sp < ARCH_RED_ZONE ? sp : sp - ARCH_RED_ZONE;
}

static bool hint_is_of_use(uint64_t sp, uint64_t hint_top)
{
	return hint_top > sp && hint_top - stack_start(sp) <= SAMPLE_STACK_MAX;
}

/*
 * A thread whose stack pointer is above the end of its stack is on another one,
 * and has several (coroutines): too often for the largest copy each time, which
 * takes 0.3 ms.
 */
#define OTHER_STACK_MAX (128u * 1024)

/* Bytes to ask for from stack_start on. */
static size_t stack_want(uint64_t sp, uint64_t hint_top)
{
	if (hint_is_of_use(sp, hint_top))
		return (size_t)(hint_top - stack_start(sp));
	if (hint_top > SNAPSHOT_NO_HINT && hint_top <= sp)
		return OTHER_STACK_MAX;
	return SAMPLE_STACK_MAX;
}

size_t snapshot_size(uint64_t sp, uint64_t hint_top)
{
	return sizeof(struct record_sample) + stack_want(sp, hint_top);
}

/*
 * Below a top that is known, all is stack, however much of it was never
 * touched. Else what was not may be the room between two stacks: only the page
 * that the red zone or the next frame lies in may be missing. The reader says
 * so if it needs more (struct msg_stack_hint).
 */
#define HOLE_PAGES_MAX 1

size_t snapshot_take(struct record_sample *record, int pagemap_fd,
		     struct memory_seen *seen, int32_t tid,
		     const uint64_t *regs, uint64_t regs_known, uint32_t flags,
		     uint64_t hint_top)
{
	size_t hole_max = hint_is_of_use(regs[ARCH_SP], hint_top)
				  ? MEMORY_PAGES_MAX
				  : HOLE_PAGES_MAX;
	uint64_t start = stack_start(regs[ARCH_SP]);
	size_t want = stack_want(regs[ARCH_SP], hint_top);
	ssize_t n = memory_read(pagemap_fd, seen, tid, start, record->stack,
				want, hole_max);

	/* The red zone may lie in what cannot be read. */
	if (n < 0 && start < regs[ARCH_SP]) {
		want -= (size_t)(regs[ARCH_SP] - start);
		start = regs[ARCH_SP];
		n = memory_read(pagemap_fd, seen, tid, start, record->stack,
				want, hole_max);
	}
	record->flags = flags;
	record->arch = ARCH_SAMPLE;
	record->regs_known = regs_known;
	memcpy(record->regs, regs, ARCH_REGS * sizeof(regs[0]));
	memset(record->regs + ARCH_REGS, 0,
	       (SAMPLE_REGS_MAX - ARCH_REGS) * sizeof(regs[0]));
	record->stack_addr = start;
	record->stack_size = n < 0 ? 0 : (uint32_t)n;
	record->second_size = 0;
	/* All that was asked for is there: only a hint says that it ends. */
	if (record->stack_size == want &&
	    !hint_is_of_use(regs[ARCH_SP], hint_top))
		record->flags |= SAMPLE_CAPPED;
	return sizeof(*record) + record->stack_size;
}

/*
 * Handlers' stacks are as large as this: one that the reader has told of is
 * left when sp is farther away.
 */
#define NEAR_BYTES (64u * 1024)

/* The usual limit of a stack, RLIMIT_STACK; below may be anything. */
#define OWN_STACK_MAX (8u << 20)

uint64_t snapshot_plan(const struct snapshot_second *second, uint64_t sp,
		       uint64_t own_end, size_t *ret_size)
{
	const uint64_t away =
		sp > second->sp ? sp - second->sp : second->sp - sp;
	const uint64_t size = own_end - second->addr;

	*ret_size = 0;
	if (second->addr == 0 || second->addr >= own_end ||
	    size > OWN_STACK_MAX || away > NEAR_BYTES)
		return 0;
	/* One more than the cap says that it was reached. */
	*ret_size = (size_t)min_u64(size, SAMPLE_STACK_MAX + 1);
	return second->addr;
}

size_t snapshot_add(struct record_sample *record, int pagemap_fd, int32_t tid,
		    uint64_t addr, size_t size)
{
	const size_t at = ((size_t)record->stack_size + 7) & ~(size_t)7;
	struct sample_second *second = (void *)(record->stack + at);
	const bool capped = size > SAMPLE_STACK_MAX;
	ssize_t n;

	if (addr >= record->stack_addr &&
	    addr - record->stack_addr < record->stack_size)
		return sizeof(*record) + record->stack_size;
	n = memory_read(pagemap_fd, NULL, tid, addr, second->bytes,
			min_size(size, SAMPLE_STACK_MAX), MEMORY_PAGES_MAX);
	if (n <= 0)
		return sizeof(*record) + record->stack_size;
	memset(record->stack + record->stack_size, 0, at - record->stack_size);
	second->addr = addr;
	record->second_size = (uint32_t)n;
	if (capped)
		record->flags |= SAMPLE_SECOND_CAPPED;
	return sizeof(*record) + at + sizeof(*second) + (size_t)n;
}
