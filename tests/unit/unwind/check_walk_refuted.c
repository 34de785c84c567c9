/*
 * Rules of call frame information that are wrong about an instruction, or look
 * so, on made-up stacks of this program's own code.
 */
#include "lib/unwind/unwind.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/base/buf.h"
#include "tests/unit/suite.h"

#define MAPS_BYTES_MAX (1u << 20)
/* Above all that a program has mapped; sp is in the middle. */
#define STACK UINT64_C(0x7ffff0000000)
#define WORDS 64
#define TOP   32

/*
 * One that pushes without a word of it, as gcc -Oz writes "edi = 7"; one that
 * is about to push the address that it returns to; one that has popped it, and
 * says so; one that calls then; and who has called them.
 */
__asm__(".text\n"
	".type pushes, @function\npushes:\n.cfi_startproc\n"
	"push $7\npushed: pop %rdi\nret\n.cfi_endproc\n.size pushes, .-pushes\n"
	".type swaps, @function\nswaps:\n.cfi_startproc\n"
	"nop\nswapping: push %rcx\nret\n.cfi_endproc\n.size swaps, .-swaps\n"
	".type pops, @function\npops:\n.cfi_startproc\n"
	"pop %rcx\n.cfi_adjust_cfa_offset -8\n"
	"popped: push %rcx\n.cfi_adjust_cfa_offset 8\nret\n"
	".cfi_endproc\n.size pops, .-pops\n"
	".type calls_above, @function\ncalls_above:\n.cfi_startproc\n"
	"pop %rcx\n.cfi_adjust_cfa_offset -8\n"
	"call pops\nhas_called: jmp *%rcx\n"
	".cfi_endproc\n.size calls_above, .-calls_above\n"
	"refuted_root:\n.cfi_startproc\n.cfi_undefined rip\n"
	"call pushes\nhas_pushed: nop\n"
	"call swaps\nhas_swapped: nop\n"
	"call pops\nhas_popped: nop\n.cfi_endproc\n");
extern const uint8_t pushed[], swapping[], popped[];
extern const uint8_t has_pushed[], has_swapped[], has_popped[], has_called[];

static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	/* Of libraries nothing is asked. */
	if ((uint64_t)(uintptr_t)pushed < start ||
	    (uint64_t)(uintptr_t)pushed >= end)
		return -ENOENT;
	*ret_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static const struct unwind_files files = {.image = image};
static const struct unwind_cache_options options = {.max_bytes = 16u << 20};

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
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

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
	sample->regs[SAMPLE_X86_64_RSP] = STACK + 8 * TOP;
	sample->stack_addr = STACK;
	sample->stack_size = WORDS * 8;
	stack = (uint64_t *)(void *)sample->stack;
}

static void tear_down(void)
{
	free(sample);
	unwind_space_free(space);
	unwind_cache_free(cache);
}

static void walk(const uint8_t *pc)
{
	sample->regs[SAMPLE_X86_64_RIP] = word_of(pc);
	ck_assert_int_eq(unwind_walk(space, sample,
				     sizeof(*sample) + sample->stack_size,
				     UNWIND_FRAMES_MAX, &out),
			 0);
}

static void check_caller(const uint8_t *ra)
{
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(out.n, 2);
	ck_assert_uint_eq(out.frames[1].addr, word_of(ra));
	ck_assert(out.frames[1].by_heuristic);
}

static void check_none(void)
{
	ck_assert_int_eq(out.end, UNWIND_END_NO_MAP);
	ck_assert_uint_eq(out.n, 1);
}

START_TEST(push_without_a_word)
{
	stack[TOP] = 7;
	stack[TOP + 1] = word_of(has_pushed);
	walk(pushed);
	check_caller(has_pushed);
	/* A word that follows no call of it. */
	stack[TOP + 1] = word_of(has_swapped) + 1;
	walk(pushed);
	check_none();
}
END_TEST

/* Where the rule finds an address, that is believed. */
START_TEST(not_refuted)
{
	stack[TOP] = word_of(has_swapped);
	stack[TOP + 1] = word_of(has_pushed);
	walk(pushed);
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(out.frames[1].addr, word_of(has_swapped));
	ck_assert(!out.frames[1].by_heuristic);
}
END_TEST

START_TEST(address_not_pushed_yet)
{
	stack[TOP] = 7;
	stack[TOP - 1] = word_of(has_swapped);
	walk(swapping);
	check_caller(has_swapped);
	/* One of a call of another function, which is over. */
	stack[TOP - 1] = word_of(has_pushed);
	walk(swapping);
	check_none();
	stack[TOP - 1] = 7;
	walk(swapping);
	check_none();
}
END_TEST

/* Its caller's frame is where its own ends. */
START_TEST(return_address_popped)
{
	stack[TOP - 1] = word_of(has_popped);
	walk(popped);
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(out.n, 2);
	ck_assert_uint_eq(out.frames[1].addr, word_of(has_popped));
	ck_assert(!out.frames[1].by_heuristic);
	/* A call of it has left its own there: who waits for one is above. */
	stack[TOP - 1] = word_of(has_called);
	walk(popped);
	ck_assert_int_eq(out.end, UNWIND_END_BAD_CFA);
	ck_assert_uint_eq(out.n, 2);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("walk_refuted");
	TCase *c = tcase_create("walk_refuted");

	tcase_add_checked_fixture(c, set_up, tear_down);
	tcase_add_test(c, push_without_a_word);
	tcase_add_test(c, not_refuted);
	tcase_add_test(c, address_not_pushed_yet);
	tcase_add_test(c, return_address_popped);
	suite_add_tcase(s, c);
	return s;
}
