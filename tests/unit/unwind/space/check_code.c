/* Tests of code.h with code of a made-up file: what answers cost, and which are kept. */
#include "lib/unwind/space/code.h"
#include "lib/unwind/space/pc_info.h"

#include <string.h>

#include "lib/unwind/cpu.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/made_up.h"

#define CODE UINT64_C(0x400000)

/* Offsets in the file. The first page is its header. */
#define STATIC	 0x1900 /* a function without a symbol */
#define TAILS	 0x1000 /* functions that jump to it, with symbols */
#define N_TAILS	 100
#define PATH	 0x1980 /* a path to a ret */
#define TRAP	 0x1a00 /* rt_sigreturn's trampoline */
#define CODE_END 0x2000

/* The cost of a search of all symbols. */
#define SEARCH (4 * N_TAILS)

static const char maps_text[] = "400000-403000 r-xp 00000000 fe:01 1 /a\n";

#if CPU_ELF_MACHINE == EM_X86_64
/* mov $15, %rax; syscall */
static const uint8_t trap[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
#else
/* mov x8, 139; svc 0 */
static const uint32_t trap[] = {0xd2801168, 0xd4000001};
#endif

static void put_code(uint8_t *file)
{
	for (size_t i = 0; i < N_TAILS; i++) {
		const size_t at = TAILS + i * MADE_UP_STEP;
		const int32_t distance = STATIC - (int32_t)(at + 5);

		file[at] = 0xe9;
		memcpy(file + at + 1, &distance, sizeof(distance));
	}
	memcpy(file + PATH, "\xeb\x00\x5b\xc3", 4); /* jmp; pop %rbx; ret */
	memcpy(file + TRAP, trap, sizeof(trap));
}

static bool is_unreadable;
static unsigned int n_requests;

static int image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	static uint8_t file[CODE_END];

	(void)ctx;
	(void)end;
	n_requests++;
	if (is_unreadable)
		return -ESRCH;
	ck_assert_uint_eq(start, CODE);
	put_code(file);
	*ret_fd = made_up_file(file + MADE_UP_CODE, CODE_END - MADE_UP_CODE, TAILS, N_TAILS);
	return 0;
}

static const struct unwind_files files = {.image = image};
static const struct unwind_cache_options options = {
	.max_bytes = 1u << 20,
	.hash_seed = 0x5eed,
};

static struct unwind_cache *cache;
static struct unwind_space *space;

static void set_up(void)
{
	is_unreadable = false;
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &files, NULL, &space));
	OK(unwind_space_set_maps(space, maps_text, sizeof(maps_text) - 1));
	cache_begin(cache);
	ck_assert_ptr_nonnull(pc_info_at(space, CODE + STATIC)->image);
}

static void tear_down(void)
{
	cache_end(cache);
	unwind_space_free(space);
	unwind_cache_free(cache);
}

FIXTURE(set_up, tear_down)

TEST(the_start_of_a_function_costs_one_search_of_the_symbols)
{
	const uint64_t at = CODE + STATIC + 1;
	uint32_t budget = SEARCH - 1;

	ck_assert_uint_eq(code_function(space, at, &budget), 0);
	ck_assert_uint_eq(budget, SEARCH - 1);
	budget = SEARCH;
	ck_assert_uint_eq(code_function(space, at, &budget), CODE + STATIC);
	ck_assert_uint_eq(budget, 0);
	ck_assert_uint_eq(code_function(space, at, &budget), CODE + STATIC);
	/* The same if none is found. */
	ck_assert_uint_eq(code_function(space, CODE + STATIC - 1, &budget), 0);
	budget = SEARCH;
	ck_assert_uint_eq(code_function(space, CODE + STATIC - 1, &budget), 0);
	ck_assert_uint_eq(budget, 0);
	budget = SEARCH;
	ck_assert_uint_eq(code_function(space, CODE + STATIC - 1, &budget), 0);
	ck_assert_uint_eq(budget, SEARCH);
}

/* The symbols may be read later. */
TEST(an_answer_without_symbols_is_not_kept)
{
	const uint64_t at = CODE + STATIC + 1;
	uint32_t budget = SEARCH;
	struct image *i = pc_info_at(space, at)->image;

	i->symbols_tried = false;
	ck_assert_uint_eq(code_function(space, at, &budget), 0);
	i->symbols_tried = true;
	ck_assert_uint_eq(code_function(space, at, &budget), CODE + STATIC);
}

/* The process has exited, so its file cannot be read. Another process may have the same file. */
TEST(answers_without_the_file_are_not_kept)
{
	uint32_t budget = UINT32_MAX;
	struct code_path path;
	uint64_t target;

	cache_end(cache);
	cache_begin(cache);
	is_unreadable = true;
	n_requests = 0;
	ck_assert(!code_is_sigreturn(space, CODE + TRAP));
	ck_assert_int_eq(code_call_before(space, CODE + TRAP, &target), CODE_CALL_UNKNOWN);
	ck_assert(!code_path_to_ret(space, CODE + PATH, &budget, &path));
	ck_assert_uint_eq(code_function(space, CODE + STATIC + 1, &budget), 0);
	ck_assert_uint_eq(n_requests, 1);
	cache_end(cache);
	cache_begin(cache);
	is_unreadable = false;
	ck_assert(code_is_sigreturn(space, CODE + TRAP));
	ck_assert_int_eq(code_path_to_ret(space, CODE + PATH, &budget, &path),
			 CPU_ELF_MACHINE == EM_X86_64);
	ck_assert_uint_eq(code_function(space, CODE + STATIC + 1, &budget), CODE + STATIC);
}

/* So code cannot choose addresses that collide in the table. */
TEST(the_table_of_answers_has_a_secret_seed)
{
	struct image *i = pc_info_at(space, CODE + STATIC)->image;

	ck_assert(code_is_sigreturn(space, CODE + TRAP));
	ck_assert_uint_eq(i->answers.used, 1);
	ck_assert_uint_eq(i->answers.seed, options.hash_seed);
	image_drop(i);
	ck_assert_uint_eq(i->answers.seed, options.hash_seed);
}
