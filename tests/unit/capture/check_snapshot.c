#include "lib/capture/snapshot.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/capture/proc/memory.h"
#include "lib/capture/ptrace/arch.h"
#include "tests/unit/suite.h"

#define KNOWN (UINT64_C(1) << ARCH_SP | UINT64_C(1) << ARCH_PC)

/* The number of inaccessible pages around the test's stack. */
#define MARGIN_PAGES 64

/* The test's stack: inaccessible pages, then bytes, then inaccessible pages. */
static struct {
	uint8_t *guard;
	uint8_t *bytes;
	size_t size;
	uint64_t bottom, top;
} stack;

/* The pagemap of this process; -1: none, as on a kernel without pagemap. */
static int pagemap_fd;
static struct memory_seen seen;
static uint64_t regs[ARCH_REGS];
static struct record_sample *record;

static void make_stack(size_t size)
{
	const size_t margin = MARGIN_PAGES * (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *all = mmap(NULL, size + 2 * margin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ck_assert_ptr_ne(all, MAP_FAILED);
	stack.guard = all;
	stack.bytes = all + margin;
	stack.size = size;
	OK(mprotect(stack.bytes, size, PROT_READ | PROT_WRITE));
	for (size_t i = 0; i < size; i++)
		stack.bytes[i] = (uint8_t)(i * 7 + i / 256);
	stack.bottom = (uint64_t)(uintptr_t)stack.bytes;
	stack.top = stack.bottom + size;
}

static void set_up(void)
{
	pagemap_fd = -1;
	seen = (struct memory_seen){0};
	record = malloc(SNAPSHOT_SIZE_MAX);
	ck_assert_ptr_nonnull(record);
	/* Old bytes of the ring must not appear in the record. */
	memset(record, 0xa5, SNAPSHOT_SIZE_MAX);
	memset(regs, 0, sizeof(regs));
	regs[ARCH_PC] = 0x401000;
}

static void open_pagemap(void)
{
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	OK(memory_open(proc_fd, (uint32_t)getpid(), &pagemap_fd));
	close_fd(&proc_fd);
}

static void tear_down(void)
{
	free(record);
	close_fd(&pagemap_fd);
	if (stack.guard != NULL)
		(void)munmap(stack.guard,
			     stack.size + 2 * MARGIN_PAGES * (size_t)sysconf(_SC_PAGESIZE));
	stack.guard = NULL;
}

/* Plans a copy of the thread's stack up to top; 0: the end is not known, so as much as there is. */
static struct stack_plan plan_up_to(uint64_t sp, uint64_t top)
{
	const uint64_t start = sp - min_u64(sp, ARCH_RED_ZONE);

	return (struct stack_plan){
		.known = {.top = top, .second = 1, .own_end = 2},
		.size = top == 0 ? SAMPLE_STACK_MAX : (size_t)(top - start),
	};
}

static size_t take_by(uint64_t sp, const struct stack_plan *plan)
{
	size_t size;

	regs[ARCH_SP] = sp;
	size = snapshot_take(record, pagemap_fd, &seen, getpid(), regs, KNOWN, SAMPLE_RUNNING,
			     plan);
	ck_assert_uint_le(size, snapshot_size(plan));
	ck_assert_uint_le(size, SNAPSHOT_SIZE_MAX);
	ck_assert_uint_eq(record->arch, SNAPSHOT_ARCH);
	ck_assert_uint_eq(record->regs_known, KNOWN);
	ck_assert_int_eq(memcmp(record->regs, regs, sizeof(regs)), 0);
	for (size_t i = ARCH_REGS; i < SAMPLE_REGS_MAX; i++)
		ck_assert_uint_eq(record->regs[i], 0);
	ck_assert_mem_eq(&record->known, &plan->known, sizeof(plan->known));
	if (record->stack_size > 0)
		ck_assert_int_eq(memcmp(record->stack,
					stack.bytes + (record->stack_addr - stack.bottom),
					record->stack_size),
				 0);
	return size;
}

static size_t take(uint64_t sp, uint64_t top)
{
	const struct stack_plan plan = plan_up_to(sp, top);
	const size_t size = take_by(sp, &plan);

	ck_assert_uint_eq(size, sizeof(*record) + record->stack_size);
	ck_assert_uint_eq(record->second_size, 0);
	return size;
}

FIXTURE(set_up, tear_down)

TESTS(copies_red_zone_to_end, 2)
{
	if (_i == 1)
		open_pagemap();
	make_stack(65536);
	(void)take(stack.bottom + 1000, 0);
	ck_assert_uint_eq(record->stack_addr, stack.bottom + 1000 - ARCH_RED_ZONE);
	ck_assert_uint_eq(record->stack_size, 65536 - 1000 + ARCH_RED_ZONE);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
}

TESTS(copies_up_to_the_top, 2)
{
	if (_i == 1)
		open_pagemap();
	make_stack(65536);
	(void)take(stack.bottom + 1000, stack.bottom + 5000);
	ck_assert_uint_eq(record->stack_addr + record->stack_size, stack.bottom + 5000);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
}

TESTS(a_copy_of_a_deep_stack_is_capped_and_flagged, 2)
{
	if (_i == 1)
		open_pagemap();
	make_stack(SAMPLE_STACK_MAX + 4096);
	(void)take(stack.bottom + ARCH_RED_ZONE, 0);
	ck_assert_uint_eq(record->stack_size, SAMPLE_STACK_MAX);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING | SAMPLE_CAPPED);
}

/* A stack whose known top is at the limit is copied whole, and SAMPLE_CAPPED is not set. */
TESTS(a_stack_up_to_a_top_at_the_cap_is_not_capped, 2)
{
	if (_i == 1)
		open_pagemap();
	make_stack(SAMPLE_STACK_MAX + 4096);
	(void)take(stack.bottom + ARCH_RED_ZONE, stack.bottom + SAMPLE_STACK_MAX);
	ck_assert_uint_eq(record->stack_size, SAMPLE_STACK_MAX);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
}

#if ARCH_RED_ZONE > 0
TEST(a_red_zone_that_cannot_be_read_is_left_out)
{
	make_stack(8192);
	(void)take(stack.bottom + 8, 0);
	ck_assert_uint_eq(record->stack_addr, stack.bottom + 8);
	ck_assert_uint_eq(record->stack_size, 8192 - 8);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
}

TEST(a_capped_copy_without_a_red_zone_is_flagged)
{
	make_stack(SAMPLE_STACK_MAX + 4096);
	(void)take(stack.bottom, 0);
	ck_assert_uint_eq(record->stack_addr, stack.bottom);
	ck_assert_uint_ge(record->stack_size, SAMPLE_STACK_MAX - ARCH_RED_ZONE);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING | SAMPLE_CAPPED);
}
#endif

/* Up to a known top all memory is stack: untouched pages in between are copied as zeros. */
TEST(untouched_pages_below_a_known_top_are_copied_as_zeros)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	open_pagemap();
	make_stack(100 * page);
	OK(madvise(stack.bytes + 2 * page, 90 * page, MADV_DONTNEED));
	(void)take(stack.bottom + page, stack.top);
	ck_assert_uint_eq(record->stack_addr + record->stack_size, stack.top);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
}

TEST(pages_of_another_stack_are_not_read)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	open_pagemap();
	make_stack(100 * page);
	OK(madvise(stack.bytes + 2 * page, 90 * page, MADV_DONTNEED));
	(void)take(stack.bottom + page, 0);
	ck_assert_uint_eq(record->stack_addr + record->stack_size, stack.bottom + 2 * page);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
}

/* If the stack pointer is invalid, the record has registers only. */
TESTS(no_stack_gives_registers_only, 2)
{
	const uint64_t nowhere[] = {0, 8, UINT64_MAX, UINT64_MAX - 4096,
				    UINT64_C(0xffff800000000000)};

	if (_i == 1)
		open_pagemap();
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		ck_assert_uint_eq(take(nowhere[i], 0), sizeof(*record));
		ck_assert_uint_eq(record->stack_size, 0);
		ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
	}
}

/* Copies the stack from byte 1000 up to top, and a second range. */
static size_t take_with(uint64_t top, uint64_t second, size_t second_size)
{
	struct stack_plan plan = plan_up_to(stack.bottom + 1000, top);

	plan.second = second;
	plan.second_size = second_size;
	return take_by(stack.bottom + 1000, &plan);
}

TESTS(adds_a_second_range, 2)
{
	const struct sample_second *second;
	size_t size;

	if (_i == 1)
		open_pagemap();
	make_stack(65536);
	/* The first range ends in the middle of a word. */
	size = take_with(stack.bottom + 2001, stack.bottom + 30000, 5000);
	ck_assert_uint_eq(record->second_size, 5000);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
	ck_assert_uint_eq(record->stack_size, 1001 + ARCH_RED_ZONE);
	second = (const void *)(record->stack + (record->stack_size + 7) / 8 * 8);
	ck_assert_uint_eq(size, (size_t)((const uint8_t *)second + 5008 - (const uint8_t *)record));
	ck_assert_uint_eq(second->addr, stack.bottom + 30000);
	ck_assert_mem_eq(second->bytes, stack.bytes + 30000, 5000);
}

TESTS(a_second_range_is_not_copied_twice, 2)
{
	size_t size;

	if (_i == 1)
		open_pagemap();
	make_stack(65536);
	size = take(stack.bottom + 1000, 0);
	ck_assert_uint_eq(take_with(0, stack.bottom + 30000, 5000), size);
	ck_assert_uint_eq(record->second_size, 0);
}

TESTS(an_unreadable_second_range_is_left_out, 2)
{
	size_t size;

	if (_i == 1)
		open_pagemap();
	make_stack(65536);
	size = take(stack.bottom + 1000, stack.bottom + 2001);
	ck_assert_uint_eq(take_with(stack.bottom + 2001, stack.bottom - 4096, 2048), size);
	ck_assert_uint_eq(record->second_size, 0);
}

TESTS(a_capped_second_range_is_flagged, 2)
{
	struct stack_plan plan;

	if (_i == 1)
		open_pagemap();
	make_stack(65536);
	plan = plan_up_to(stack.bottom + 1000, stack.bottom + 2001);
	plan.second = stack.bottom + 30000;
	plan.second_size = 5000;
	(void)take_by(stack.bottom + 1000, &plan);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
	plan.second_is_capped = true;
	(void)take_by(stack.bottom + 1000, &plan);
	ck_assert_uint_eq(record->second_size, 5000);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING | SAMPLE_SECOND_CAPPED);
}

/* Both ranges have the largest size of a plan, and begin in the middle of a page. */
TESTS(the_largest_copies_are_whole, 2)
{
	const struct sample_second *second;
	struct stack_plan plan;

	if (_i == 1)
		open_pagemap();
	make_stack(2 * SAMPLE_WHOLE_MAX + 8192);
	plan = plan_up_to(stack.bottom + 1000,
			  stack.bottom + 1000 - ARCH_RED_ZONE + SAMPLE_WHOLE_MAX);
	plan.second = stack.bottom + SAMPLE_WHOLE_MAX + 3000;
	plan.second_size = SAMPLE_WHOLE_MAX;
	(void)take_by(stack.bottom + 1000, &plan);
	ck_assert_uint_eq(record->stack_size, SAMPLE_WHOLE_MAX);
	ck_assert_uint_eq(record->second_size, SAMPLE_WHOLE_MAX);
	ck_assert_uint_eq(record->flags, SAMPLE_RUNNING);
	second = (const void *)(record->stack + record->stack_size);
	ck_assert_mem_eq(second->bytes, stack.bytes + SAMPLE_WHOLE_MAX + 3000, SAMPLE_WHOLE_MAX);
}
