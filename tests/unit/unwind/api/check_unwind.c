/*
 * Tests of unwind.h with made-up samples. The code is in memory without a file, so the walk can
 * only follow frame pointers.
 */
#include "lib/unwind/unwind.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/image/cache.h"
#include "lib/unwind/space/space.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/made_up.h"
#include "tests/unit/unwind/record.h"

#define CODE  UINT64_C(0x400000)
#define STACK MADE_UP_STACK
#define WORDS 512

#define BIT(n)	  (UINT64_C(1) << (n))
#define SP_AND_PC (BIT(CPU_SP) | BIT(CPU_PC))

static const char maps_text[] = "400000-500000 r-xp 00000000 fe:01 1 /a\n"
				"7ffff0000000-7ffff0008000 rw-p 00000000 00:00 0 \n";

static int no_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	(void)start;
	(void)end;
	(void)ret_fd;
	return -ENOENT;
}

static const struct unwind_files no_files = {.image = no_image};
static const struct unwind_cache_options options = {.max_bytes = 1u << 20};

static struct made_up m;
static struct unwind_space *space;
static struct record_sample *sample;
static size_t sample_size;
static uint64_t *stack;
static struct unwind_stack out;

static void set_up(void)
{
	made_up_map(&m, WORDS, maps_text, &no_files);
	space = m.space;
	sample = m.sample;
	sample_size = sizeof(*sample) + WORDS * 8;
	sample->regs_known |= BIT(CPU_FP);
	sample->regs[CPU_FP] = STACK + 16;
	sample->regs[CPU_PC] = CODE;
	stack = m.stack;
	/* Frame pointers at words 2, 10 and 20; the last is the root's. */
	stack[2] = STACK + 80;
	stack[3] = CODE + 0x100;
	stack[10] = STACK + 160;
	stack[11] = CODE + 0x200;
	stack[20] = 0;
	stack[21] = CODE + 0x300;
}

static void tear_down(void)
{
	m.sample = sample;
	made_up_end(&m);
}

static void walk(void)
{
	OK(unwind_walk(space, sample, sample_size, 16, &out));
}

static void walk_to(size_t n, enum unwind_end end)
{
	walk();
	ck_assert_int_eq(out.end, end);
	ck_assert_uint_eq(out.n, n);
}

static void refuse(size_t size)
{
	ck_assert_int_eq(unwind_walk(space, sample, size, 4, &out), -EINVAL);
}

FIXTURE(set_up, tear_down)

TEST(without_cfi_the_walk_follows_frame_pointers)
{
	walk_to(4, UNWIND_END_ROOT);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_uint_eq(out.frames[i].addr, CODE + i * 0x100);
		ck_assert_uint_eq(out.frames[i].is_leaf, i == 0);
		ck_assert_uint_eq(out.frames[i].by_heuristic, i != 0);
	}
	ck_assert(out.has_heuristic);
	ck_assert_uint_eq(out.stack_top, STACK + 176);
}

TEST(an_unknown_frame_pointer_is_searched_on_the_stack)
{
	sample->regs_known = SP_AND_PC;
	sample->regs[CPU_FP] = 1;
	walk_to(4, UNWIND_END_ROOT);
	ck_assert(out.frames[1].by_heuristic);
	ck_assert_uint_eq(out.stack_top, STACK + 176);
	/* A pair from which no walk reaches the root is not taken for a frame. */
	stack[20] = 8;
	walk_to(1, UNWIND_END_UNKNOWN_REGISTER);
}

TEST(wrong_remembered_registers_are_ignored)
{
	sample->flags = SAMPLE_REMEMBERED;
	sample->regs[CPU_FP] = STACK + 80;
	walk();
	/* The pair leads to the root, so it is used. */
	ck_assert_uint_eq(out.n, 3);
	sample->regs[CPU_FP] = STACK + 88;
	walk_to(4, UNWIND_END_ROOT);
}

TEST(invalid_frame_pointers_end_the_walk_with_their_reason)
{
	/* Invalid frame pointers: odd, below sp, not on the stack, not ascending. */
	static const uint64_t bad[] = {STACK + 17, STACK - 8, 8, STACK + 0x100000};

	for (size_t i = 0; i < array_size(bad); i++) {
		sample->regs[CPU_FP] = bad[i];
		walk_to(1, UNWIND_END_NO_CFI);
	}
	sample->regs[CPU_FP] = STACK + 16;
	stack[2] = STACK + 16;
	walk();
	ck_assert_int_eq(out.end, UNWIND_END_NO_CFI);
	stack[2] = STACK + 80;
	stack[11] = STACK;
	walk_to(2, UNWIND_END_NO_CFI);
	stack[11] = 0;
	walk_to(2, UNWIND_END_ROOT);
	sample->regs[CPU_PC] = 0x1000;
	walk_to(1, UNWIND_END_NO_MAP);
	ck_assert_uint_eq(out.frames[0].addr, 0x1000);
	ck_assert_uint_eq(out.stack_top, 0);
}

TEST(the_walk_ends_at_the_caller_s_limit_of_frames)
{
	OK(unwind_walk(space, sample, sample_size, 4, &out));
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	OK(unwind_walk(space, sample, sample_size, 3, &out));
	ck_assert_int_eq(out.end, UNWIND_END_MAX_FRAMES);
	ck_assert_uint_eq(out.n, 3);
	OK(unwind_walk(space, sample, sample_size, 1, &out));
	ck_assert_uint_eq(out.n, 1);
}

/* The frame pointers lead to another stack, which the sample has only in the second part. */
TEST(the_walk_continues_in_the_second_range)
{
	const uint64_t second = STACK + (1u << 20);
	const size_t size = sample_size + sizeof(struct sample_second) + 64;
	struct sample_second *range;
	uint64_t words[8] = {0};

	words[3] = CODE + 0x300;
	stack[10] = second + 16;
	walk_to(3, UNWIND_END_NO_CFI);
	ck_assert_uint_eq(out.second_from, 0);
	sample = realloc(sample, size);
	ck_assert_ptr_nonnull(sample);
	range = (void *)(sample->stack + sample->stack_size);
	range->addr = second;
	memcpy(range->bytes, words, sizeof(words));
	sample->second_size = sizeof(words);
	OK(unwind_walk(space, sample, size, 16, &out));
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	ck_assert_uint_eq(out.n, 4);
	ck_assert_uint_eq(out.frames[3].addr, CODE + 0x300);
	ck_assert_uint_eq(out.second, 0);
	ck_assert_uint_eq(out.second_from, second + 32);
	/* stack_top is about the first range only. */
	ck_assert_uint_eq(out.stack_top, STACK + 96);
}

#define PAGE	      4096
#define SECOND_BYTES  64
#define SECOND_LARGER (1u << 20)

/* A record whose writer changes second_size once. */
static struct {
	struct record_sample *record;
	uint8_t *second; /* the page of second_size, which cannot be read before the change */
	bool is_changed;
} changing;

/* Handler of SIGSEGV: called when the reader reads the second range, after it has checked the size.
 */
static void change_size(int number, siginfo_t *info, void *context)
{
	const uint8_t *at = info->si_addr;

	(void)number;
	(void)context;
	if (changing.is_changed || at < changing.second || at >= changing.second + PAGE ||
	    mprotect(changing.second, PAGE, PROT_READ | PROT_WRITE) < 0)
		_exit(EXIT_FAILURE);
	changing.is_changed = true;
	changing.record->second_size = SECOND_LARGER;
}

/*
 * Places the header and the stack in two pages, the second range in the next page, and no page
 * behind it. The walk leads beyond the range.
 */
static void share_sample(uint64_t second)
{
	uint8_t *memory =
		mmap(NULL, 3 * PAGE + SECOND_LARGER, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sample_second *range;

	ck_assert_ptr_ne(memory, MAP_FAILED);
	OK(mprotect(memory, 3 * PAGE, PROT_READ | PROT_WRITE));
	changing.second = memory + 2 * PAGE;
	changing.record = (void *)(changing.second - sample_size);
	memcpy(changing.record, sample, sample_size);
	changing.record->second_size = SECOND_BYTES;
	range = (void *)changing.second;
	range->addr = second;
	memcpy(range->bytes + 16, (const uint64_t[]){second + 2 * PAGE, CODE + 0x300}, 16);
	OK(mprotect(changing.second, PAGE, PROT_NONE));
}

TEST(a_size_that_changes_after_its_check_has_no_effect)
{
	const struct sigaction action = {.sa_sigaction = change_size, .sa_flags = SA_SIGINFO};
	const uint64_t second = STACK + (1u << 20);

	stack[10] = second + 16;
	share_sample(second);
	OK(sigaction(SIGSEGV, &action, NULL));
	OK(unwind_walk(space, changing.record,
		       sample_size + sizeof(struct sample_second) + SECOND_BYTES, 16, &out));
	ck_assert(changing.is_changed);
	ck_assert_uint_eq(out.n, 4);
	ck_assert_uint_eq(out.frames[3].addr, CODE + 0x300);
}

TEST(malformed_records_are_refused)
{
	refuse(sizeof(*sample) - 1);
	refuse(sample_size - 8);
	sample->arch = 99;
	refuse(sample_size);
	sample->arch = CPU_SAMPLE_ARCH;
	sample->stack_addr = UINT64_MAX - 8;
	refuse(sample_size);
	sample->stack_addr = STACK;
	/* The second range is outside of the record, or its end overflows. */
	sample->second_size = 1;
	refuse(sample_size);
	sample->stack_size -= 16;
	sample->second_size = 9;
	refuse(sample_size);
	sample->second_size = 8;
	stack[WORDS - 2] = UINT64_MAX - 8;
	OK(unwind_walk(space, sample, sample_size, 4, &out));
	stack[WORDS - 2] = UINT64_MAX - 7;
	refuse(sample_size);
	sample->stack_size += 16;
	sample->second_size = 0;
	sample->regs_known = BIT(CPU_SP);
	refuse(sample_size);
}

TEST(malformed_maps_change_nothing)
{
	static const char before[] = "1000-3000 r-xp 0 fe:01 1 /a\n"
				     "5000-6000 rwxp 0 00:00 0 \n";
	struct unwind_image image;

	OK(unwind_space_set_maps(space, before, sizeof(before) - 1));
	ck_assert(unwind_space_covers(space, 0x2fff));
	ck_assert(!unwind_space_covers(space, 0x3000));
	ck_assert_int_eq(unwind_space_set_maps(space, "x\n", 2), -EINVAL);
	ck_assert(unwind_space_covers(space, 0x2fff));
	ck_assert_int_eq(unwind_image_at(space, 0x1000, &image), -ENOENT);
	ck_assert_int_eq(unwind_image_of_path(space, "/b", &image), -ENOENT);
}

/* Counts requests; otherwise answers as the broker does. */
struct counted {
	struct target *target;
	size_t images;
};

static int counted_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	struct counted *c = ctx;

	c->images++;
	return target_files.image(c->target, start, end, ret_fd);
}

static const struct unwind_files counted_files = {.image = counted_image};

static void read_maps(const struct target *from, struct unwind_space *to)
{
	char *text = target_maps_text(from);

	OK(unwind_space_set_maps(to, text, strlen(text)));
	free(text);
}

FIXTURE(NULL, NULL)

/* The first run has enough memory, the second a limit of one byte. */
TESTS(two_targets_share_images_which_a_small_limit_drops, 2)
{
	const struct unwind_cache_options tiny = {.max_bytes = 1};
	const char *args[] = {"nanosleep", NULL};
	struct unwind_space *spaces[2];
	struct record_sample *samples[2];
	struct counted counts[2] = {{NULL, 0}, {NULL, 0}};
	struct unwind_cache *shared;
	struct target t[2];
	size_t sizes[2];
	struct image *leaf;
	const char *name;
	uint64_t offset;
	size_t images;
	size_t kept;

	OK(unwind_cache_new(_i ? &tiny : &options, &shared));
	for (int i = 0; i < 2; i++) {
		target_start(&t[i], "unw_o2", args);
		(void)target_wait_blocked(&t[i], t[i].pid);
		thread_seize(t[i].pid);
		thread_interrupt(t[i].pid);
		samples[i] = record_thread(&t[i], t[i].pid, &sizes[i]);
		thread_detach(t[i].pid);
		counts[i].target = &t[i];
		OK(unwind_space_new(shared, &counted_files, &counts[i], &spaces[i]));
		read_maps(&t[i], spaces[i]);
		ck_assert_uint_eq(counts[i].images, 0);
		OK(unwind_walk(spaces[i], samples[i], sizes[i], 64, &out));
		ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	}
	/* The program and libc: each target asks once for each. */
	ck_assert_uint_eq(shared->n, 2);
	ck_assert_uint_eq(counts[0].images, 2);
	ck_assert_uint_eq(counts[1].images, 2);
	images = counts[0].images;
	read_maps(&t[0], spaces[0]);
	OK(unwind_walk(spaces[0], samples[0], sizes[0], 64, &out));
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	if (_i == 0)
		ck_assert_uint_eq(counts[0].images, images);
	for (size_t i = 0; i < shared->n; i++) {
		ck_assert_uint_eq(shared->images[i]->refs, 2);
		/* Images that the last call used may stay, whatever their size. */
		ck_assert_uint_gt(image_bytes(shared->images[i]), 0);
	}
	/* Symbols were read as well, so they are known after the target has exited. */
	OK(unwind_symbol_at(spaces[0], out.frames[0].addr, &name, &offset));
	ck_assert_str_eq(name, "clock_nanosleep");
	if (_i == 0)
		ck_assert_uint_eq(counts[0].images, images);
	/* A call that uses the leaf's image only: the other one is dropped. */
	leaf = space_certain_mapping(spaces[0], out.frames[0].addr)->image;
	image_drop(leaf);
	shared->generation++;
	OK(unwind_symbol_at(spaces[0], out.frames[0].addr, &name, &offset));
	ck_assert_str_eq(name, "clock_nanosleep");
	kept = 0;
	for (size_t i = 0; i < shared->n; i++)
		kept += image_bytes(shared->images[i]) != 0;
	ck_assert_uint_eq(kept, _i == 0 ? 2 : 1);
	OK(unwind_walk(spaces[1], samples[1], sizes[1], 64, &out));
	ck_assert_int_eq(out.end, UNWIND_END_ROOT);
	for (int i = 0; i < 2; i++) {
		free(samples[i]);
		unwind_space_free(spaces[i]);
		target_stop(&t[i]);
	}
	unwind_cache_free(shared);
}
