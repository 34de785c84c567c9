#include "lib/capture/snapshot.h"

#include <stdbool.h>
#include <string.h>

#include "lib/capture/proc/memory.h"
#include "lib/capture/ptrace/arch.h"

#if defined(__x86_64__)
_Static_assert(ARCH_SP == SAMPLE_X86_64_RSP && ARCH_PC == SAMPLE_X86_64_RIP,
	       "a sample has registers by DWARF number");
#endif
_Static_assert(ARCH_REGS <= SAMPLE_REGS_MAX, "a sample has room for all registers");

size_t snapshot_size(const struct stack_plan *plan)
{
	size_t size = sizeof(struct record_sample) + plan->size;

	/* The second range is aligned. */
	if (plan->second_size > 0)
		size += sizeof(struct sample_second) + 7 + plan->second_size;
	return size;
}

/*
 * If the end of the stack is known, all memory below it is stack, even if most of it was never
 * touched. Otherwise, untouched pages may be the gap between two stacks, so at most one page may be
 * missing: that of the red zone or of the next frame. If that is too little, the reader sends a
 * hint (struct msg_stack_hint).
 */
#define HOLE_PAGES_MAX 1

static void take_stack(struct record_sample *record, int pagemap_fd, struct memory_seen *seen,
		       int32_t tid, uint64_t sp, const struct stack_plan *plan)
{
	const bool ends = plan->known.top != 0;
	const size_t hole_max = ends ? MEMORY_PAGES_MAX : HOLE_PAGES_MAX;
	uint64_t start = arch_stack_start(sp);
	size_t want = plan->size;
	ssize_t n = memory_read(pagemap_fd, seen, tid, start, record->stack, want, hole_max);

	/* The red zone may be in memory that cannot be read. */
	if (n < 0 && start < sp) {
		want -= (size_t)(sp - start);
		start = sp;
		n = memory_read(pagemap_fd, seen, tid, start, record->stack, want, hole_max);
	}
	record->stack_addr = start;
	record->stack_size = n < 0 ? 0 : (uint32_t)n;
	/* All requested bytes were read. Only a hint can tell that the stack ends there. */
	if (record->stack_size == want && !ends)
		record->flags |= SAMPLE_CAPPED;
}

/* Adds the second range. Returns the record's size. */
static size_t take_second(struct record_sample *record, int pagemap_fd, int32_t tid,
			  const struct stack_plan *plan)
{
	const size_t at = ((size_t)record->stack_size + 7) & ~(size_t)7;
	struct sample_second *second = (void *)(record->stack + at);
	ssize_t n;

	record->second_size = 0;
	if (plan->second_size == 0 || (plan->second >= record->stack_addr &&
				       plan->second - record->stack_addr < record->stack_size))
		return sizeof(*record) + record->stack_size;
	n = memory_read(pagemap_fd, NULL, tid, plan->second, second->bytes, plan->second_size,
			MEMORY_PAGES_MAX);
	if (n <= 0)
		return sizeof(*record) + record->stack_size;
	memset(record->stack + record->stack_size, 0, at - record->stack_size);
	second->addr = plan->second;
	record->second_size = (uint32_t)n;
	if (plan->second_is_capped)
		record->flags |= SAMPLE_SECOND_CAPPED;
	return sizeof(*record) + at + sizeof(*second) + (size_t)n;
}

size_t snapshot_take(struct record_sample *record, int pagemap_fd, struct memory_seen *seen,
		     int32_t tid, const uint64_t *regs, uint64_t regs_known, uint32_t flags,
		     const struct stack_plan *plan)
{
	record->flags = flags;
	record->arch = SNAPSHOT_ARCH;
	record->regs_known = regs_known;
	memcpy(record->regs, regs, ARCH_REGS * sizeof(regs[0]));
	memset(record->regs + ARCH_REGS, 0, (SAMPLE_REGS_MAX - ARCH_REGS) * sizeof(regs[0]));
	record->known = plan->known;
	take_stack(record, pagemap_fd, seen, tid, regs[ARCH_SP], plan);
	return take_second(record, pagemap_fd, tid, plan);
}
