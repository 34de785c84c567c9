// machine: x86_64
/*
 * Tests of the search for a frame pointer, on made-up stacks with code of this program: which
 * candidate is chosen, and the limit of the cost for a whole stack.
 */
#include "lib/unwind/walk/search.h"

#include <sys/mman.h>

#include "lib/unwind/walk/rule_step.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/made_up.h"

#define WORDS (SAMPLE_STACK_MAX / 8)

/*
 * Three functions that find their frames by fp. One loses its caller's fp, so that a search is
 * needed; one keeps it; one is the root. "lost" and "kept" are behind calls to them.
 */
__asm__(".text\n"
	"loses:\n.cfi_startproc\n.cfi_def_cfa rbp, 16\n"
	".cfi_offset rip, -8\n.cfi_undefined rbp\n"
	"call loses\nlost: call keeps\nkept_by_loses: nop\n.cfi_endproc\n"
	"keeps:\n.cfi_startproc\n.cfi_def_cfa rbp, 16\n"
	".cfi_offset rip, -8\n.cfi_offset rbp, -16\n"
	"call keeps\nkept: call loses\nlost_by_keeps: nop\n.cfi_endproc\n"
	/* A frame of 32 bytes, and one of 32 bytes plus the value of rax. */
	".macro framed name change\n"
	"\\name: .cfi_startproc\npush %rbp\nmov %rsp, %rbp\nsub $32, %rsp\n"
	".cfi_def_cfa rbp, 16\n.cfi_offset rip, -8\n.cfi_offset rbp, -16\n"
	"\\change\ncall *%rax\n\\name\\()_inside: leave\nret\n.cfi_endproc\n"
	".endm\n"
	"framed fixed\n"
	"framed varied \"sub %rax, %rsp\"\n"
	"root:\n.cfi_startproc\n.cfi_undefined rip\n"
	"call keeps\nrooted: nop\n"
	"call *%rax\nrooted_by_pointer: nop\n"
	"call fixed\nrooted_fixed: nop\n"
	"call varied\nrooted_varied: nop\n"
	"call varied\nrooted_before: nop\n.cfi_endproc\n");
extern const uint8_t loses[], lost[], kept_by_loses[];
extern const uint8_t keeps[], kept[], lost_by_keeps[], rooted[];
extern const uint8_t rooted_by_pointer[];
extern const uint8_t fixed_inside[], varied_inside[];
extern const uint8_t rooted_fixed[], rooted_varied[], rooted_before[];

/* Code without a file, as if the program had generated it. */
#define MADE_BYTES 4096
static uint8_t *made;

static struct made_up m;

static void set_up(void)
{
	made = mmap(NULL, MADE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(made, MAP_FAILED);
	made_up_start(&m, WORDS, loses);
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(loses);
}

static void tear_down(void)
{
	(void)munmap(made, MADE_BYTES);
	made_up_end(&m);
}

/* Writes a pair at word i: frame pointer, return address. */
static void put(size_t i, uint64_t fp, const uint8_t *ra)
{
	m.stack[i] = fp;
	m.stack[i + 1] = made_up_word(ra);
}

FIXTURE(set_up, tear_down)

TEST(the_search_finds_the_frame_pointer)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(keeps);
	put(20, MADE_UP_STACK + 30 * 8, kept);
	put(30, 0, rooted);
	made_up_check(&m, 3, made_up_word(kept));
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.frames[2].addr, made_up_word(rooted));
	/* The cost of the words of 128 KiB, and of two candidates. */
	ck_assert_uint_gt(m.out.guess_cost, 4 * 16384);
	ck_assert_uint_lt(m.out.guess_cost, 4 * 16384 + 256);
}

/*
 * Generated code, whose calls cannot be read, is as good a caller as one further up with an
 * indirect call: the lower frame is chosen.
 */
TEST(generated_code_is_as_good_a_caller_as_an_indirect_call)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(keeps);
	put(20, MADE_UP_STACK + 30 * 8, made + 16);
	put(30, 0, rooted_by_pointer);
	made_up_check(&m, 3, made_up_word(made + 16));
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(m.out.frames[2].addr, made_up_word(rooted_by_pointer));
}

/* A pair from an earlier call is at the end of the frame that the prologue allocates. */
TEST(the_size_of_a_varying_frame_is_no_evidence)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(varied_inside);
	put(4, MADE_UP_STACK + 30 * 8, rooted_by_pointer);
	put(20, 0, rooted_varied);
	made_up_check(&m, 2, made_up_word(rooted_varied));
	ck_assert_int_eq(m.out.end, UNWIND_END_ROOT);
}

/* The same pair is chosen, because the frame does not vary. */
TEST(the_size_of_a_fixed_frame_is_evidence)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(fixed_inside);
	put(4, MADE_UP_STACK + 30 * 8, rooted_by_pointer);
	put(20, 0, rooted_fixed);
	made_up_check(&m, 2, made_up_word(rooted_by_pointer));
}

TEST(pairs_within_the_frame_are_skipped)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(varied_inside);
	put(3, 0, rooted_before);
	put(20, 0, rooted_varied);
	made_up_check(&m, 2, made_up_word(rooted_varied));
}

/* Walks, and checks that the walk ends exactly at the limit, and keeps the frames found so far. */
static void walk_until_over(size_t frames_min)
{
	made_up_walk(&m);
	ck_assert_int_eq(m.out.end, UNWIND_END_UNKNOWN_REGISTER);
	ck_assert_uint_gt(m.out.n, frames_min);
	ck_assert_uint_eq(m.out.guess_cost, WALK_GUESS_COST_MAX);
}

/* Each frame needs a search, and each pair looks like the right one. */
TEST(searches_for_every_frame_end_at_the_limit)
{
	for (size_t i = 0; i + 1 < WORDS; i += 2)
		put(i, 0, lost);
	walk_until_over(16);
}

/* One of 32 frames needs a search, and the walk from each candidate is long. */
TEST(long_walks_from_candidates_end_at_the_limit)
{
	m.sample->regs[SAMPLE_X86_64_RIP] = made_up_word(keeps);
	for (size_t i = 0; i + 1 < WORDS; i += 2) {
		const size_t nth = i / 2 % 32;

		put(i, MADE_UP_STACK + (i + 2) * 8,
		    nth == 30	? kept_by_loses
		    : nth == 31 ? lost_by_keeps
				: kept);
	}
	walk_until_over(32);
}

/* Few candidates: the words between them are the cost. */
TEST(long_searches_between_candidates_end_at_the_limit)
{
	for (size_t i = 0; i + 1 < WORDS; i += 300)
		put(i, 0, lost);
	walk_until_over(2);
}

/* Remembered registers would allow a second walk, if cost were left. */
TEST(further_walks_do_not_exceed_the_limit)
{
	for (size_t i = 0; i + 1 < WORDS; i += 2)
		put(i, 0, lost);
	m.sample->flags = SAMPLE_REMEMBERED;
	walk_until_over(16);
}
