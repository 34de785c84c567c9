#include "daemon/unwind/hints.h"

#include <malloc.h>

#include "lib/capture/ptrace/arch.h"
#include "tests/unit/suite.h"

#define TID	42
#define ADDR	UINT64_C(0x7f0000001000)
#define OWN_END UINT64_C(0x7fff00100000)
#define SLACK	(16 * 1024)
#define MS	NS_PER_MS

/* A sample of 8 KB, and its stack, which was walked to the root. */
static struct unwind_sample sample;
static struct unwind_stack stack;
static struct msg_stack_hint hint;

static void set_up(void)
{
	sample = (struct unwind_sample){
		.tid = TID,
		.stack = {.addr = ADDR, .size = 8192},
		.known = {.top = ADDR + 8192, .own_end = OWN_END},
	};
	stack.end = UNWIND_END_ROOT;
	stack.stack_top = ADDR + 8000;
	stack.missing = stack.second = stack.second_from = 0;
	hint = (struct msg_stack_hint){0};
}

static bool wanted(void)
{
	return hints_make(7, &sample, &stack, &hint);
}

FIXTURE(set_up, NULL)

TEST(a_sample_with_all_needed_bytes_causes_no_hint)
{
	ck_assert(!wanted());
	sample.known.top = 0;
	ck_assert(!wanted());
}

/* The hint depends only on what capture knew, which the sample says. */
TEST(a_new_capture_gets_the_hint_that_the_old_one_had)
{
	stack.end = UNWIND_END_BAD_CFA;
	stack.second = OWN_END - 65536;
	for (int captures = 0; captures < 100; captures++) {
		sample.known.second = 0;
		ck_assert(wanted());
		ck_assert_uint_eq(hint.target, 7);
		ck_assert_uint_eq(hint.tid, TID);
		ck_assert_uint_eq(hint.sp, ADDR);
		ck_assert_uint_eq(hint.top, sample.known.top);
		ck_assert_uint_eq(hint.second, stack.second - SLACK);
		/* Now capture knows. */
		sample.known.second = hint.second;
		ck_assert(!wanted());
	}
}

/* The same holds after an exec. */
TEST(a_reused_tid_gets_a_hint_for_its_own_stack)
{
	stack.end = UNWIND_END_UNREADABLE;
	stack.missing = ADDR + 65536;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.top, ADDR + 65536 + SLACK);
	sample.stack.addr += 1u << 30;
	sample.known.top = sample.stack.addr + 8192;
	stack.missing = sample.stack.addr + 10000;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.top, sample.stack.addr + 10000 + SLACK);
}

TEST(bytes_that_capture_cannot_copy_cause_no_hint)
{
	stack.end = UNWIND_END_UNREADABLE;
	stack.missing = ADDR + 10000;
	sample.known.top = ADDR + 10000;
	ck_assert(!wanted());
	/* The bytes are beyond the largest copy. */
	stack.missing = ADDR + SAMPLE_STACK_MAX;
	stack.stack_top = stack.missing - 4096;
	ck_assert(!wanted());
	/* They are not on the thread's own stack. */
	stack.end = UNWIND_END_BAD_CFA;
	stack.missing = 0;
	stack.second = OWN_END;
	ck_assert(!wanted());
	stack.second = OWN_END - SAMPLE_OWN_STACK_MAX - 1;
	ck_assert(!wanted());
	/* If capture does not know the own stack yet, the hint makes it find out. */
	sample.known.own_end = 0;
	ck_assert(wanted());
}

TEST(a_stack_that_was_cut_off_is_copied_twice_as_deep)
{
	sample.known.top = 0;
	sample.stack.size = 128 * 1024;
	stack.end = UNWIND_END_CAPPED;
	stack.missing = ADDR + 128 * 1024 + 8;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.top, stack.missing + 128 * 1024);
}

TEST(a_frame_that_is_too_large_is_skipped)
{
	sample.stack.addr = OWN_END - 600 * 1024;
	sample.known.top = 0;
	sample.stack.size = SAMPLE_STACK_MAX;
	stack.end = UNWIND_END_CAPPED;
	stack.stack_top = sample.stack.addr + 4096;
	stack.missing = OWN_END - 8192;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.top, stack.stack_top);
	ck_assert_uint_eq(hint.second, OWN_END - 8192 - 128 - SLACK);
	/* If capture does not know the own stack yet, a frame of any size is skipped. */
	stack.stack_top = stack.missing - 4096;
	sample.known.own_end = 0;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.second, OWN_END - 8192 - 128 - SLACK);
}

static void check_whole(uint64_t sp)
{
	ck_assert(wanted());
	ck_assert_uint_eq(hint.target, 7);
	ck_assert_uint_eq(hint.tid, TID);
	ck_assert_uint_eq(hint.sp, sp);
	ck_assert_uint_eq(hint.top, OWN_END);
	ck_assert_uint_eq(hint.second, 0);
}

/* All frames are small, so skipping one would not be enough. */
TEST(a_deep_stack_is_copied_as_a_whole)
{
	sample.stack.addr = OWN_END - 600 * 1024;
	sample.known.top = 0;
	sample.stack.size = SAMPLE_STACK_MAX;
	stack.end = UNWIND_END_CAPPED;
	stack.missing = sample.stack.addr + SAMPLE_STACK_MAX + 8;
	stack.stack_top = stack.missing - 4096;
	check_whole(sample.stack.addr);
	/* The last page of the copy was never touched, so it is missing. */
	sample.stack.size -= 4096;
	stack.end = UNWIND_END_UNREADABLE;
	check_whole(sample.stack.addr);
	/* The whole stack has been copied already: no further hint. */
	sample.known.top = OWN_END;
	ck_assert(!wanted());
}

TEST(if_the_bytes_to_skip_differ_by_sample_the_whole_stack_is_copied)
{
	sample.stack.addr = OWN_END - 600 * 1024;
	sample.known.top = OWN_END - 550 * 1024;
	sample.known.second = OWN_END - 32768;
	sample.stack.size = 50 * 1024;
	sample.second.addr = sample.known.second;
	sample.second.size = 32768;
	stack.end = UNWIND_END_UNREADABLE;
	stack.stack_top = sample.known.top - 8;
	stack.missing = sample.known.top + 8;
	check_whole(sample.stack.addr);
	stack.missing = OWN_END - 40000;
	check_whole(sample.stack.addr);
}

TEST(a_second_range_that_was_cut_off_is_copied_as_a_whole)
{
	sample.known.second = OWN_END - 1000 * 1024;
	sample.second.addr = sample.known.second;
	sample.second.size = SAMPLE_STACK_MAX;
	stack.end = UNWIND_END_CAPPED;
	stack.second_from = sample.second.addr + 4096;
	check_whole(sample.second.addr);
}

TEST(a_whole_stack_is_copied_only_within_the_largest_copy)
{
	sample.stack.addr = OWN_END - SAMPLE_WHOLE_MAX + 127;
	sample.known.top = 0;
	sample.stack.size = SAMPLE_STACK_MAX;
	stack.end = UNWIND_END_CAPPED;
	stack.missing = sample.stack.addr + SAMPLE_STACK_MAX + 8;
	stack.stack_top = stack.missing - 4096;
	ck_assert(!wanted());
	sample.stack.addr++;
	check_whole(sample.stack.addr);
	/* The missing bytes are not on the own stack. */
	stack.missing = OWN_END + 8;
	stack.stack_top = OWN_END;
	ck_assert(!wanted());
}

TEST(many_unused_bytes_cause_a_hint_if_the_walk_reached_the_root)
{
	sample.stack.size = 65536 + 8192;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.top, stack.stack_top);
	/* If the walk did not reach the root, it may need the bytes later. */
	stack.end = UNWIND_END_NO_CFI;
	ck_assert(!wanted());
}

/* capture guesses the beginning of the second range if it has no hint yet. */
TEST(the_hint_replaces_a_wrong_guess_of_capture_at_the_second_range)
{
	sample.known.second = OWN_END - 262144;
	sample.second.size = 262144;
	ck_assert(!wanted());
	sample.known.top = 0;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.second, 0);
	stack.second_from = OWN_END - 4096;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.second, OWN_END - 4096 - SLACK);
	stack.second_from = OWN_END - 262144 + 4096;
	ck_assert(!wanted());
}

TEST(a_sample_older_than_the_last_hint_causes_no_hint)
{
	static struct hints h;

	ck_assert(hints_may_send(&h, TID, 10 * MS, 100 * MS));
	ck_assert(!hints_may_send(&h, TID, 20 * MS, 101 * MS));
	ck_assert(!hints_may_send(&h, TID, 100 * MS, 101 * MS));
	ck_assert(hints_may_send(&h, TID + 1, 20 * MS, 101 * MS));
	ck_assert(hints_may_send(&h, TID, 110 * MS, 201 * MS));
}

/* 5,000,000 is more than the largest number of threads. */
TEST(any_number_of_threads_takes_no_more_memory)
{
	static struct hints h;
	const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;

	for (uint32_t tid = 1; tid <= 5000000; tid++)
		ck_assert(hints_may_send(&h, tid, tid * MS, tid * MS));
	ck_assert_uint_eq(mallinfo2().uordblks + mallinfo2().hblkhd, before);
}

static bool lacks(void)
{
	return hints_lacks_own_stack(&sample, &stack);
}

TEST(a_sample_of_another_stack_lacks_the_own_one)
{
	ck_assert(!lacks());
	stack.end = UNWIND_END_UNREADABLE;
	stack.second = OWN_END - 8192;
	ck_assert(lacks());
	/* capture had the hint already, or copies from a lower address. */
	sample.known.second = stack.second;
	ck_assert(!lacks());
	/* The thread has gone deeper since. */
	stack.second -= 65536;
	ck_assert(lacks());
	/* capture does not know the end of the own stack yet. */
	sample.known = (struct sample_known){0};
	ck_assert(lacks());
	/* The walk left no other stack: it was wrong. */
	sample.known.own_end = OWN_END;
	sample.stack.addr = OWN_END - 4096;
	ck_assert(!lacks());
	/* The walk came to a third stack. */
	sample.stack.addr = ADDR;
	stack.second = OWN_END;
	ck_assert(!lacks());
}

TEST(few_samples_of_a_thread_are_dropped)
{
	static struct hints h;
	int dropped = 0;

	ck_assert(!hints_must_drop(&h, TID, false));
	for (int i = 0; i < 10000; i++)
		dropped += hints_must_drop(&h, TID, true);
	ck_assert_int_ge(dropped, HINTS_DROPS_FIRST);
	ck_assert_int_le(dropped, HINTS_DROPS_FIRST + 10000 / HINTS_DROPS_SHARE);
	ck_assert(hints_must_drop(&h, TID + 1, true));
	/* A thread with the same slot. */
	ck_assert(!hints_must_drop(&h, TID + HINTS_SLOTS, true));
}

/* aarch64: a thread that waits in a function without a frame, sampled by sp and pc alone. */
TEST(registers_are_wanted_if_the_first_function_lacks_its_return_address)
{
	const uint64_t sp_and_pc = UINT64_C(1) << ARCH_SP | UINT64_C(1) << ARCH_PC;
	struct unwind_sample leaf = {.tid = 7, .regs_known = sp_and_pc};
	struct unwind_stack walked = {.n = 1, .end = UNWIND_END_UNKNOWN_REGISTER};
	struct msg_want_registers m = {0};

	leaf.regs[ARCH_SP] = 0x1000;
	leaf.regs[ARCH_PC] = 0x2000;
	ck_assert(hints_want_registers(3, &leaf, &walked, &m) == ARCH_LINK_REGISTER);
	ck_assert_uint_eq(m.target, ARCH_LINK_REGISTER ? 3 : 0);
	ck_assert_uint_eq(m.tid, ARCH_LINK_REGISTER ? 7 : 0);
	ck_assert_uint_eq(m.sp, ARCH_LINK_REGISTER ? 0x1000 : 0);
	ck_assert_uint_eq(m.pc, ARCH_LINK_REGISTER ? 0x2000 : 0);
	/* The walk has left the function. */
	walked.n = 2;
	ck_assert(!hints_want_registers(3, &leaf, &walked, &m));
	walked = (struct unwind_stack){.n = 1, .end = UNWIND_END_ROOT};
	ck_assert(!hints_want_registers(3, &leaf, &walked, &m));
	/* The registers were there. */
	walked.end = UNWIND_END_UNKNOWN_REGISTER;
	leaf.regs_known = ARCH_REGS_ALL;
	ck_assert(!hints_want_registers(3, &leaf, &walked, &m));
}
