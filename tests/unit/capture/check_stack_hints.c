#include "lib/capture/stack_hints.h"

#include "lib/capture/ptrace/arch.h"
#include "tests/unit/suite.h"

#define OWN_END UINT64_C(0x7fff00100000)
#define OTHER	UINT64_C(0x7f0000100000)
#define KB	1024u

static struct stack_hints hints;
static struct stack_plan plan;

static void set_up(void)
{
	hints = (struct stack_hints){.own_end = OWN_END};
}

static void tear_down(void)
{
	stack_hints_fini(&hints);
}

static void plan_at(uint64_t sp)
{
	stack_hints_plan(&hints, sp, &plan);
	ck_assert_uint_eq(plan.known.own_end, hints.own_end);
	ck_assert_uint_gt(plan.size, 0);
	ck_assert_uint_le(plan.size, hints.whole ? SAMPLE_WHOLE_MAX : SAMPLE_STACK_MAX);
	ck_assert_uint_le(plan.second_size, hints.whole ? SAMPLE_WHOLE_MAX : SAMPLE_STACK_MAX);
}

/* Checks that the plan for this stack pointer uses the hint. */
static void check_known(uint64_t sp, uint64_t top, uint64_t second)
{
	plan_at(sp);
	ck_assert_uint_eq(plan.known.top, top);
	ck_assert_uint_eq(plan.size, top - sp + ARCH_RED_ZONE);
	ck_assert_uint_eq(plan.known.second, second);
	ck_assert_uint_eq(plan.second, second);
	ck_assert_uint_eq(plan.second_size, second == 0 ? 0 : OWN_END - second);
}

FIXTURE(set_up, tear_down)

TEST(without_hints_the_own_stack_is_copied_to_its_end)
{
	check_known(OWN_END - 4096, OWN_END, 0);
	/*
	 * The end of the stack is farther than a copy may reach, or not known: the largest copy is
	 * made.
	 */
	plan_at(OWN_END - SAMPLE_STACK_MAX - 8);
	ck_assert_uint_eq(plan.known.top, 0);
	ck_assert_uint_eq(plan.size, SAMPLE_STACK_MAX);
	ck_assert_uint_eq(plan.second_size, 0);
	hints.own_end = 0;
	plan_at(OWN_END - 4096);
	ck_assert_uint_eq(plan.known.top, 0);
	ck_assert_uint_eq(plan.size, SAMPLE_STACK_MAX);
	ck_assert_uint_eq(plan.second_size, 0);
}

TEST(any_stack_pointer_has_a_plan)
{
	const uint64_t odd[] = {0, 1, ARCH_RED_ZONE, UINT64_MAX, UINT64_MAX - 4096, OWN_END};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		plan_at(odd[i]);
		stack_hints_take(&hints, odd[i], odd[i] + 8, odd[i]);
		stack_hints_take(&hints, odd[i], odd[i], odd[i]);
		plan_at(odd[i]);
	}
}

TEST(a_hint_sets_both_ranges)
{
	stack_hints_take(&hints, OTHER - 4096, OTHER, OWN_END - 8192);
	check_known(OTHER - 4096, OTHER, OWN_END - 8192);
	check_known(OTHER - 1024, OTHER, OWN_END - 8192);
	/* The thread's own stack has its own end. */
	check_known(OWN_END - 4096, OWN_END, 0);
}

/* The stack pointer may be on another stack below, so missing pages end the copy. */
TEST(a_deeper_stack_pointer_uses_the_same_top)
{
	stack_hints_take(&hints, OTHER - 4096, OTHER, OWN_END - 8192);
	plan_at(OTHER - 300 * KB);
	ck_assert_uint_eq(plan.known.top, 0);
	ck_assert_uint_eq(plan.size, 300 * KB + ARCH_RED_ZONE);
	ck_assert_uint_eq(plan.second, OWN_END - 8192);
	/* A hint after an unwind that lacked bytes shows that it is the same stack. */
	stack_hints_take(&hints, OTHER - 300 * KB, OTHER, OWN_END - 8192);
	check_known(OTHER - 300 * KB, OTHER, OWN_END - 8192);
	check_known(OTHER - 4096, OTHER, OWN_END - 8192);
}

TEST(a_higher_top_replaces_lower_ones)
{
	stack_hints_take(&hints, OTHER - 8192, OTHER - 4096, 0);
	stack_hints_take(&hints, OTHER - 16384, OTHER - 8192, 0);
	ck_assert_uint_eq(hints.n, 2);
	stack_hints_take(&hints, OTHER - 10000, OTHER, 0);
	ck_assert_uint_eq(hints.n, 1);
	check_known(OTHER - 16384, OTHER, 0);
}

TEST(hints_of_several_stacks_are_kept)
{
	for (uint64_t i = 0; i < STACK_HINTS_MAX; i++)
		stack_hints_take(&hints, OTHER + i * 65536 - 4096, OTHER + i * 65536,
				 OWN_END - 8192 - i);
	for (uint64_t turn = 0; turn < 2; turn++)
		for (uint64_t i = 0; i < STACK_HINTS_MAX; i++)
			check_known(OTHER + i * 65536 - 4096, OTHER + i * 65536,
				    OWN_END - 8192 - i);
}

/* A thread with ten thousand coroutines: the number of hints is limited. */
TEST(of_too_many_stacks_the_latest_hints_are_kept)
{
	for (uint64_t i = 0; i < 10000; i++)
		stack_hints_take(&hints, OTHER + i * 65536 - 4096, OTHER + i * 65536, 0);
	ck_assert_uint_eq(hints.n, STACK_HINTS_MAX);
	check_known(OTHER + 9999 * 65536 - 4096, OTHER + 9999 * 65536, 0);
	plan_at(OTHER - 4096 - SAMPLE_STACK_MAX);
	ck_assert_uint_eq(plan.known.top, 0);
	ck_assert_uint_eq(plan.size, 128 * KB);
	ck_assert_uint_eq(plan.second_size, 0);
}

/* The first sample on another stack has the second range that it probably needs. */
TEST(the_second_range_is_guessed_at_first)
{
	plan_at(OTHER);
	ck_assert_uint_eq(plan.known.top, 0);
	ck_assert_uint_eq(plan.size, SAMPLE_STACK_MAX);
	ck_assert_uint_eq(plan.second, OWN_END - 256 * KB);
	ck_assert_uint_eq(plan.known.second, plan.second);
	/* A handler on a signal stack may interrupt the thread deeper than it was seen before. */
	plan_at(OWN_END - 20000);
	plan_at(OTHER);
	ck_assert_uint_eq(plan.second, OWN_END - 256 * KB);
	plan_at(OWN_END - 300 * KB);
	plan_at(OTHER);
	ck_assert_uint_eq(plan.second, OWN_END - 300 * KB - 16 * KB);
	/* Later a hint states what other stacks need, or that they need nothing. */
	stack_hints_take(&hints, OTHER - 4096, OTHER, OWN_END - 5000);
	plan_at(OTHER + 65536);
	ck_assert_uint_eq(plan.second, OWN_END - 5000);
	stack_hints_take(&hints, OTHER - 4096, OTHER, 0);
	plan_at(OTHER + 65536);
	ck_assert_uint_eq(plan.second_size, 0);
}

/* Whatever a hint says, the second range is part of the thread's own stack. */
TEST(the_second_range_is_always_part_of_the_own_stack)
{
	const uint64_t wrong[] = {1, OWN_END, OWN_END + 1, OWN_END - SAMPLE_OWN_STACK_MAX - 1,
				  UINT64_MAX};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		stack_hints_take(&hints, OTHER - 4096, OTHER, wrong[i]);
		plan_at(OTHER - 4096);
		ck_assert_uint_eq(plan.second_size, 0);
		/*
		 * The sample reports the wrong hint nevertheless, so that the reader need not
		 * repeat it.
		 */
		ck_assert_uint_eq(plan.known.second, wrong[i]);
	}
	stack_hints_take(&hints, OTHER - 4096, OTHER, OWN_END - SAMPLE_OWN_STACK_MAX);
	plan_at(OTHER - 4096);
	ck_assert_uint_eq(plan.second_size, SAMPLE_STACK_MAX);
	ck_assert(plan.second_is_capped);
	hints.own_end = 0;
	plan_at(OTHER - 4096);
	ck_assert_uint_eq(plan.second_size, 0);
}

/* The whole own stack is copied only after a hint asks for it. */
TEST(the_own_stack_is_copied_as_a_whole)
{
	plan_at(OWN_END - 1000 * KB);
	ck_assert_uint_eq(plan.size, SAMPLE_STACK_MAX);
	stack_hints_take(&hints, OWN_END - 600 * KB, OWN_END, 0);
	check_known(OWN_END - 600 * KB, OWN_END, 0);
	/* The same at greater depth. The copy has only the bytes in use. */
	check_known(OWN_END - SAMPLE_WHOLE_MAX + ARCH_RED_ZONE, OWN_END, 0);
	check_known(OWN_END - 4096, OWN_END, 0);
	/* A copy that would not reach the root is not larger than usual. */
	plan_at(OWN_END - SAMPLE_WHOLE_MAX - 8);
	ck_assert_uint_eq(plan.known.top, 0);
	ck_assert_uint_eq(plan.size, SAMPLE_STACK_MAX);
	/* For another stack the usual limit stays. The hint ends with the thread. */
	plan_at(OTHER);
	ck_assert_uint_eq(plan.size, SAMPLE_STACK_MAX);
	stack_hints_fini(&hints);
	ck_assert(!hints.whole);
}

/* After the hint, earlier hints that excluded parts of the stack have no effect. */
TEST(a_hint_for_the_whole_replaces_earlier_ones)
{
	stack_hints_take(&hints, OWN_END - 600 * KB, OWN_END - 550 * KB, OWN_END - 8192);
	stack_hints_take(&hints, OWN_END - 700 * KB, OWN_END - 650 * KB, OWN_END - 8192);
	stack_hints_take(&hints, OTHER - 4096, OTHER, OWN_END - 8192);
	check_known(OWN_END - 600 * KB, OWN_END - 550 * KB, OWN_END - 8192);
	stack_hints_take(&hints, OWN_END - 640 * KB, OWN_END, 0);
	check_known(OWN_END - 600 * KB, OWN_END, 0);
	check_known(OWN_END - 700 * KB, OWN_END, 0);
	check_known(OTHER - 4096, OTHER, OWN_END - 8192);
}

TEST(the_second_range_is_as_large_as_the_own_stack_may_be)
{
	stack_hints_take(&hints, OTHER - 4096, OTHER, OWN_END - 1000 * KB);
	plan_at(OTHER - 4096);
	ck_assert_uint_eq(plan.second_size, SAMPLE_STACK_MAX);
	ck_assert(plan.second_is_capped);
	stack_hints_take(&hints, OWN_END - 1000 * KB, OWN_END, 0);
	check_known(OTHER - 4096, OTHER, OWN_END - 1000 * KB);
	ck_assert(!plan.second_is_capped);
}

/*
 * Hints that do not ask for the whole own stack: less is copied anyway, or the stack is not the
 * thread's own.
 */
TEST(other_hints_do_not_ask_for_the_whole_own_stack)
{
	stack_hints_take(&hints, OWN_END - 4096, OWN_END, 0);
	stack_hints_take(&hints, OWN_END - 600 * KB, OWN_END - 1, 0);
	stack_hints_take(&hints, OWN_END - 600 * KB, OWN_END, OWN_END - 4096);
	stack_hints_take(&hints, OWN_END - SAMPLE_OWN_STACK_MAX - 1, OWN_END, 0);
	stack_hints_take(&hints, OWN_END, UINT64_MAX, 0);
	hints.own_end = 0;
	stack_hints_take(&hints, OWN_END - 600 * KB, OWN_END, 0);
	ck_assert(!hints.whole);
}

TEST(a_top_that_no_copy_reaches_is_ignored)
{
	stack_hints_take(&hints, OTHER, OTHER, 0);
	stack_hints_take(&hints, OTHER, OTHER - 1, 0);
	stack_hints_take(&hints, OTHER, OTHER + SAMPLE_STACK_MAX + 1, 0);
	ck_assert_uint_eq(hints.n, 0);
}

/* A signal stack just above a small own stack: each has its own top. */
TEST(a_stack_right_above_the_own_one_has_its_own_top)
{
	stack_hints_take(&hints, OWN_END + 60 * KB, OWN_END + 64 * KB, 0);
	check_known(OWN_END - 4096, OWN_END, 0);
	check_known(OWN_END + 60 * KB, OWN_END + 64 * KB, 0);
}
