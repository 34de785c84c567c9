#include "lib/aggregate/stacks.h"

#include "tests/unit/aggregate/letters.h"
#include "tests/unit/suite.h"

static struct stacks s;

static void set_up(void)
{
	stacks_init(&s, 0);
}

static void tear_down(void)
{
	stacks_fini(&s);
}

static uint32_t add(const char *word)
{
	const struct unwind_stack *stack = letters_stack(word);
	uint32_t node = 12345;

	OK(stacks_add(&s, PROFILE_NONE, stack->frames, stack->n, &node));
	return node;
}

static void check_word(const struct stacks *of, uint32_t node, const char *expected)
{
	char word[64];
	size_t n = 0;

	for (; node != PROFILE_NONE; node = of->nodes[node].parent)
		word[n++] =
			(char)('a' + (of->frames[of->nodes[node].frame].addr - 0x10000) / 0x100);
	word[n] = '\0';
	ck_assert_str_eq(word, expected);
}

FIXTURE(set_up, tear_down)

TEST(callers_are_shared)
{
	uint32_t ab = add("abm"), cb = add("cbm"), again = add("abm");

	ck_assert_uint_eq(ab, again);
	ck_assert_uint_ne(ab, cb);
	ck_assert_uint_eq(s.nodes[ab].parent, s.nodes[cb].parent);
	ck_assert_uint_eq(s.n_nodes, 4);
	ck_assert_uint_eq(s.n_frames, 4);
	ck_assert_uint_eq(s.n_times, 2);
	check_word(&s, ab, "abm");
	check_word(&s, cb, "cbm");
}

TEST(leaves_and_callers_are_different_frames)
{
	struct unwind_frame frames[] = {{0x1000, 1, 0}, {0x1000, 0, 0}};
	uint32_t node;

	OK(stacks_add(&s, PROFILE_NONE, frames, 2, &node));
	ck_assert_uint_eq(s.n_frames, 2);
	ck_assert(s.frames[s.nodes[node].frame].is_leaf);
	ck_assert(!s.frames[s.nodes[s.nodes[node].parent].frame].is_leaf);
	/* Addresses that differ in the highest bit only are different frames. */
	frames[0].addr = UINT64_C(0xffffffffff601000);
	OK(stacks_add(&s, PROFILE_NONE, frames, 1, &node));
	frames[0].addr = UINT64_C(0x7fffffffff601000);
	OK(stacks_add(&s, PROFILE_NONE, frames, 1, &node));
	ck_assert_uint_eq(s.n_frames, 4);
}

TEST(near_root)
{
	uint32_t deep = add("abcd"), one = add("x"), two = add("yz");

	ck_assert(!s.frames[s.nodes[deep].frame].near_root);
	deep = s.nodes[deep].parent;
	ck_assert(!s.frames[s.nodes[deep].frame].near_root);
	deep = s.nodes[deep].parent;
	ck_assert(s.frames[s.nodes[deep].frame].near_root);
	deep = s.nodes[deep].parent;
	ck_assert(s.frames[s.nodes[deep].frame].near_root);
	ck_assert(s.frames[s.nodes[one].frame].near_root);
	ck_assert(s.frames[s.nodes[two].frame].near_root);
}

TEST(frames_at_address_0_are_left_out)
{
	const struct unwind_frame frames[] = {
		{0, 1, 0}, {0x10108, 0, 0}, {0, 0, 0}, {0x10008, 0, 0}};
	uint32_t node;

	OK(stacks_add(&s, PROFILE_NONE, frames, 4, &node));
	check_word(&s, node, "ba");
	OK(stacks_add(&s, PROFILE_NONE, frames, 1, &node));
	ck_assert_uint_eq(node, PROFILE_NONE);
	OK(stacks_add(&s, PROFILE_NONE, frames, 0, &node));
	ck_assert_uint_eq(node, PROFILE_NONE);
	ck_assert_uint_eq(s.n_times, 1);
}

TEST(copy)
{
	struct stacks to;
	uint32_t node;

	stacks_init(&to, 1);
	add("zz");
	OK(stacks_copy(&to, &s, add("abcdm"), &node));
	check_word(&to, node, "abcdm");
	ck_assert(to.frames[to.nodes[node].frame].is_leaf);
	ck_assert_uint_eq(to.n_nodes, 5);
	OK(stacks_copy(&to, &s, PROFILE_NONE, &node));
	ck_assert_uint_eq(node, PROFILE_NONE);
	stacks_fini(&to);
	stacks_fini(NULL);
}

TEST(charge)
{
	uint32_t a = add("am"), b = add("bm");

	stacks_charge(&s, a, 5, PROFILE_RUNNING);
	stacks_charge(&s, b, 7, PROFILE_WAITING);
	stacks_charge(&s, a, 6, PROFILE_RUNNING);
	stacks_charge(&s, b, 3, PROFILE_READY);
	ck_assert_uint_eq(s.times[s.time_of[a]].ns[PROFILE_RUNNING], 11);
	ck_assert_uint_eq(s.times[s.time_of[a]].ns[PROFILE_WAITING], 0);
	ck_assert_uint_eq(s.times[s.time_of[b]].ns[PROFILE_READY], 3);
	ck_assert_uint_eq(s.times[s.time_of[b]].ns[PROFILE_WAITING], 7);
}

/* Each frame and each stack is counted once: "[0,1],". */
TEST(payload_bytes)
{
	add("am");
	ck_assert_uint_eq(s.payload_bytes, 2 * PROFILE_FRAME_BYTES + PROFILE_STACK_BYTES + 4);
	add("am");
	ck_assert_uint_eq(s.payload_bytes, 2 * PROFILE_FRAME_BYTES + PROFILE_STACK_BYTES + 4);
	add("bam");
	ck_assert_uint_eq(s.payload_bytes, 4 * PROFILE_FRAME_BYTES + 2 * PROFILE_STACK_BYTES + 10);
}
