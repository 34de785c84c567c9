/*
 * The search for a frame pointer, on made-up stacks of this program's own code:
 * it finds the right one, and what it costs is bounded for a stack as a whole.
 */
#include "lib/unwind/search.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/base/buf.h"
#include "tests/unit/suite.h"

#define MAPS_BYTES_MAX (1u << 20)
/* Above all that a program has mapped. */
#define STACK UINT64_C(0x7ffff0000000)
#define WORDS (SAMPLE_STACK_MAX / 8)

/*
 * Three functions whose frames are found by the frame pointer: one loses its
 * caller's, so that it has to be looked for there; one keeps it; and one is the
 * root. What is behind a call to the first of them is lost, to the second kept.
 */
__asm__(".text\n"
	"loses:\n.cfi_startproc\n.cfi_def_cfa rbp, 16\n"
	".cfi_offset rip, -8\n.cfi_undefined rbp\n"
	"call loses\nlost: call keeps\nkept_by_loses: nop\n.cfi_endproc\n"
	"keeps:\n.cfi_startproc\n.cfi_def_cfa rbp, 16\n"
	".cfi_offset rip, -8\n.cfi_offset rbp, -16\n"
	"call keeps\nkept: call loses\nlost_by_keeps: nop\n.cfi_endproc\n"
	/* A frame of 32 bytes, and one of 32 and what rax says. */
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

static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	(void)end;
	/* Of libraries nothing is asked. */
	if ((uint64_t)(uintptr_t)loses < start ||
	    (uint64_t)(uintptr_t)loses >= end)
		return -ENOENT;
	*ret_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static const struct unwind_files files = {.image = image};
static const struct unwind_cache_options options = {.max_bytes = 16u << 20};

/* Code in no file, as if it had been made by the program. */
#define MADE_BYTES 4096
static uint8_t *made;

static struct unwind_cache *cache;
static struct unwind_space *space;
static struct record_sample *sample;
static uint64_t *stack;
static struct unwind_stack out;

static uint64_t word_of(const uint8_t *code)
{
	return (uint64_t)(uintptr_t)code;
}

static void set_up(void)
{
	struct buf text;
	int fd;

	made = mmap(NULL, MADE_BYTES, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(made, MAP_FAILED);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	buf_init(&text, MAPS_BYTES_MAX);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(buf_read_fd(&text, fd), 0);
	close_fd(&fd);
	ck_assert_int_eq(unwind_cache_new(&options, &cache), 0);
	ck_assert_int_eq(unwind_space_new(cache, &files, NULL, &space), 0);
	ck_assert_int_eq(
		unwind_space_set_maps(space, buf_string(&text), text.len), 0);
	buf_fini(&text);
	sample = calloc(1, sizeof(*sample) + WORDS * 8);
	ck_assert_ptr_nonnull(sample);
	sample->arch = SAMPLE_ARCH_X86_64;
	sample->regs_known = UINT64_C(1) << SAMPLE_X86_64_RSP |
			     UINT64_C(1) << SAMPLE_X86_64_RIP;
	sample->regs[SAMPLE_X86_64_RSP] = STACK;
	sample->regs[SAMPLE_X86_64_RIP] = word_of(loses);
	sample->stack_addr = STACK;
	sample->stack_size = WORDS * 8;
	stack = (uint64_t *)(void *)sample->stack;
}

static void tear_down(void)
{
	(void)munmap(made, MADE_BYTES);
	free(sample);
	unwind_space_free(space);
	unwind_cache_free(cache);
}

static void walk(void)
{
	ck_assert_int_eq(unwind_walk(space, sample,
				     sizeof(*sample) + sample->stack_size,
				     UNWIND_FRAMES_MAX, &out),
			 0);
}

/* A pair at word i: frame pointer, return address. */
static void put(size_t i, uint64_t fp, const uint8_t *ra)
{
	stack[i] = fp;
	stack[i + 1] = word_of(ra);
}

START_TEST(test_found)
{
	sample->regs[SAMPLE_X86_64_RIP] = word_of(keeps);
	put(20, STACK + 30 * 8, kept);
	put(30, 0, rooted);
	walk();
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(out.n, 3);
	ck_assert_uint_eq(out.frames[1].addr, word_of(kept));
	ck_assert_uint_eq(out.frames[2].addr, word_of(rooted));
	/* The words of 128 KiB, and two candidates. */
	ck_assert_uint_gt(out.searched, 4 * 16384);
	ck_assert_uint_lt(out.searched, 4 * 16384 + 256);
}
END_TEST

/*
 * Code that was made at run time, whose calls cannot be read, is no worse a
 * caller than one further up that calls by a pointer: its frame is kept.
 */
START_TEST(test_made_code)
{
	sample->regs[SAMPLE_X86_64_RIP] = word_of(keeps);
	put(20, STACK + 30 * 8, made + 16);
	put(30, 0, rooted_by_pointer);
	walk();
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(out.n, 3);
	ck_assert_uint_eq(out.frames[1].addr, word_of(made + 16));
	ck_assert_uint_eq(out.frames[2].addr, word_of(rooted_by_pointer));
}
END_TEST

/*
 * What a call that is over has left where the frame would end if the function
 * had no more than its prologue takes: of who varies that counts for nothing.
 */
START_TEST(test_varying_frame)
{
	sample->regs[SAMPLE_X86_64_RIP] = word_of(varied_inside);
	put(4, STACK + 30 * 8, rooted_by_pointer);
	put(20, 0, rooted_varied);
	walk();
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(out.n, 2);
	ck_assert_uint_eq(out.frames[1].addr, word_of(rooted_varied));
}
END_TEST

/* The same of who does not. */
START_TEST(test_fixed_frame)
{
	sample->regs[SAMPLE_X86_64_RIP] = word_of(fixed_inside);
	put(4, STACK + 30 * 8, rooted_by_pointer);
	put(20, 0, rooted_fixed);
	walk();
	ck_assert_uint_eq(out.n, 2);
	ck_assert_uint_eq(out.frames[1].addr, word_of(rooted_by_pointer));
}
END_TEST

/* No frame ends within what its own prologue takes. */
START_TEST(test_frame_within)
{
	sample->regs[SAMPLE_X86_64_RIP] = word_of(varied_inside);
	put(3, 0, rooted_before);
	put(20, 0, rooted_varied);
	walk();
	ck_assert_uint_eq(out.n, 2);
	ck_assert_uint_eq(out.frames[1].addr, word_of(rooted_varied));
}
END_TEST

/* It looks for all that it may, no further, and keeps what it has found. */
static void walk_until_over(size_t frames_min)
{
	walk();
	ck_assert_int_eq(out.end, UNWIND_END_UNKNOWN_REGISTER);
	ck_assert_uint_gt(out.n, frames_min);
	ck_assert_uint_eq(out.searched, SEARCH_WORK_MAX);
}

/* Each frame needs a search, and each pair above looks right. */
START_TEST(test_every_frame)
{
	for (size_t i = 0; i + 1 < WORDS; i += 2)
		put(i, 0, lost);
	walk_until_over(16);
}
END_TEST

/* In one of 32 frames, and the walk from each candidate is long. */
START_TEST(test_long_ways)
{
	sample->regs[SAMPLE_X86_64_RIP] = word_of(keeps);
	for (size_t i = 0; i + 1 < WORDS; i += 2) {
		const size_t nth = i / 2 % 32;

		put(i, STACK + (i + 2) * 8,
		    nth == 30	? kept_by_loses
		    : nth == 31 ? lost_by_keeps
				: kept);
	}
	walk_until_over(32);
}
END_TEST

/* Few candidates: it is the words between them. */
START_TEST(test_far_ways)
{
	for (size_t i = 0; i + 1 < WORDS; i += 300)
		put(i, 0, lost);
	walk_until_over(2);
}
END_TEST

/* What was remembered does not help, nor would two more walks. */
START_TEST(test_remembered)
{
	for (size_t i = 0; i + 1 < WORDS; i += 2)
		put(i, 0, lost);
	sample->flags = SAMPLE_REMEMBERED;
	walk_until_over(16);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("unwind/search");
	TCase *tc = tcase_create("made up");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, test_found);
	tcase_add_test(tc, test_made_code);
	tcase_add_test(tc, test_varying_frame);
	tcase_add_test(tc, test_fixed_frame);
	tcase_add_test(tc, test_frame_within);
	tcase_add_test(tc, test_every_frame);
	tcase_add_test(tc, test_long_ways);
	tcase_add_test(tc, test_far_ways);
	tcase_add_test(tc, test_remembered);
	suite_add_tcase(s, tc);
	return s;
}
