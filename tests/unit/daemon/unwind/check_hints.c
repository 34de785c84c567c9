#include "daemon/unwind/hints.h"

#include <malloc.h>

#include "tests/unit/suite.h"

#define TID	42
#define ADDR	UINT64_C(0x7f0000001000)
#define OWN_END UINT64_C(0x7fff00100000)
#define SLACK	(16 * 1024)
#define MS	NS_PER_MS

/* A sample of 8 KB, and its walk, which went to the root. */
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

TEST(a_sample_that_was_enough_gives_no_hint)
{
	ck_assert(!wanted());
	sample.known.top = 0;
	ck_assert(!wanted());
}

/* The sample says what capture knows: so it is as in the first sample. */
TEST(a_new_capture_is_told_what_the_old_one_knew)
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
		/* From then on capture knows. */
		sample.known.second = hint.second;
		ck_assert(!wanted());
	}
}

/* A number that is used again, or another program: other stacks. */
TEST(a_thread_has_no_hint_of_the_one_before_it)
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

TEST(what_cannot_be_had_is_not_asked_for_again)
{
	stack.end = UNWIND_END_UNREADABLE;
	stack.missing = ADDR + 10000;
	sample.known.top = ADDR + 10000;
	ck_assert(!wanted());
	/* No copy is so large. */
	stack.missing = ADDR + SAMPLE_STACK_MAX;
	stack.stack_top = stack.missing - 4096;
	ck_assert(!wanted());
	/* Nor is another stack than the thread's own ever copied. */
	stack.end = UNWIND_END_BAD_CFA;
	stack.missing = 0;
	stack.second = OWN_END;
	ck_assert(!wanted());
	stack.second = OWN_END - SAMPLE_OWN_STACK_MAX - 1;
	ck_assert(!wanted());
	/* Where capture does not know yet which that is it finds out. */
	sample.known.own_end = 0;
	ck_assert(wanted());
}

TEST(a_stack_of_unknown_depth_is_copied_twice_as_deep)
{
	sample.known.top = 0;
	sample.stack.size = 128 * 1024;
	stack.end = UNWIND_END_CAPPED;
	stack.missing = ADDR + 128 * 1024 + 8;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.top, stack.missing + 128 * 1024);
}

TEST(a_large_frame_is_left_out)
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
	/* Where capture does not know the own stack yet, any frame will do. */
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

/* Of a stack that is deep in every frame to leave one out would be no less. */
TEST(a_deep_stack_is_copied_as_a_whole)
{
	sample.stack.addr = OWN_END - 600 * 1024;
	sample.known.top = 0;
	sample.stack.size = SAMPLE_STACK_MAX;
	stack.end = UNWIND_END_CAPPED;
	stack.missing = sample.stack.addr + SAMPLE_STACK_MAX + 8;
	stack.stack_top = stack.missing - 4096;
	check_whole(sample.stack.addr);
	/* A page that was never touched at the end of the copy is left off. */
	sample.stack.size -= 4096;
	stack.end = UNWIND_END_UNREADABLE;
	check_whole(sample.stack.addr);
	/* It was: what is lacking then is in vain. */
	sample.known.top = OWN_END;
	ck_assert(!wanted());
}

/* What is left out of it lies elsewhere in the next sample. */
TEST(of_frames_that_move_none_is_left_out)
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

TEST(a_second_range_that_is_capped)
{
	sample.known.second = OWN_END - 1000 * 1024;
	sample.second.addr = sample.known.second;
	sample.second.size = SAMPLE_STACK_MAX;
	stack.end = UNWIND_END_CAPPED;
	stack.second_from = sample.second.addr + 4096;
	check_whole(sample.second.addr);
}

TEST(no_whole_stack_is_larger_than_a_copy)
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
	/* Nor is another stack, or nonsense, a part of it. */
	stack.missing = OWN_END + 8;
	stack.stack_top = OWN_END;
	ck_assert(!wanted());
}

TEST(bytes_that_were_copied_in_vain)
{
	sample.stack.size = 65536 + 8192;
	ck_assert(wanted());
	ck_assert_uint_eq(hint.top, stack.stack_top);
	/* Only a walk to the root tells. */
	stack.end = UNWIND_END_NO_CFI;
	ck_assert(!wanted());
}

/* Of a stack that nothing is known of, capture guesses. */
TEST(a_guess_that_was_wrong)
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

TEST(samples_older_than_the_last_hint_give_no_other)
{
	static struct hints h;

	ck_assert(hints_may_send(&h, TID, 10 * MS, 100 * MS));
	ck_assert(!hints_may_send(&h, TID, 20 * MS, 101 * MS));
	ck_assert(!hints_may_send(&h, TID, 100 * MS, 101 * MS));
	ck_assert(hints_may_send(&h, TID + 1, 20 * MS, 101 * MS));
	ck_assert(hints_may_send(&h, TID, 110 * MS, 201 * MS));
}

/* As many as there can be, and more. */
TEST(threads_take_no_memory)
{
	static struct hints h;
	const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;

	for (uint32_t tid = 1; tid <= 5000000; tid++)
		ck_assert(hints_may_send(&h, tid, tid * MS, tid * MS));
	ck_assert_uint_eq(mallinfo2().uordblks + mallinfo2().hblkhd, before);
}
