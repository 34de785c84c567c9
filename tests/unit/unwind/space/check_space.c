/* Tests of when files are requested, with a real program. The test can refuse the requests. */
#include "lib/unwind/space/space.h"
#include "lib/unwind/space/pc_info.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/image/cache.h"
#include "lib/unwind/image/image.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/record.h"

static const struct unwind_cache_options options = {.max_bytes = 1u << 20};

static struct target target;
static struct unwind_cache *cache;
static struct unwind_space *space;
static struct record_sample *sample;
static size_t sample_size;
static size_t n_requests;
static bool refused;

static int get_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	n_requests++;
	return refused ? -EIO : target_files.image(ctx, start, end, ret_fd);
}

static const struct unwind_files files = {.image = get_image};

static void read_maps(void)
{
	char *text = target_maps_text(&target);

	OK(unwind_space_set_maps(space, text, strlen(text)));
	free(text);
}

static void set_up(void)
{
	const char *args[] = {"nanosleep", NULL};

	target_start(&target, "unw_o2", args);
	(void)target_wait_blocked(&target, target.pid);
	thread_seize(target.pid);
	thread_interrupt(target.pid);
	sample = record_thread(&target, target.pid, &sample_size);
	thread_detach(target.pid);
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &files, &target, &space));
	read_maps();
	ck_assert_uint_eq(n_requests, 0);
}

static void tear_down(void)
{
	free(sample);
	unwind_space_free(space);
	unwind_cache_free(cache);
	target_stop(&target);
}

static enum unwind_end walk(void)
{
	static struct unwind_stack stack;

	OK(unwind_walk(space, sample, sample_size, 64, &stack));
	return stack.end;
}

static void check_leaf_has_a_name(void)
{
	const char *name;
	uint64_t offset;

	OK(unwind_symbol_at(space, sample->regs[SAMPLE_X86_64_RIP], &name, &offset));
	ck_assert_str_eq(name, "clock_nanosleep");
}

FIXTURE(set_up, tear_down)

/* unwind looks up the program for its release before the first sample. */
TEST(cfi_and_symbols_are_read_with_the_first_look_up)
{
	const struct map *program = &space->maps.v[0];
	struct unwind_image image;

	OK(unwind_image_of_path(space, program->path, &image));
	ck_assert_uint_eq(n_requests, 1);
	/* The program has exited. */
	refused = true;
	ck_assert_ptr_nonnull(pc_info_at(space, program->start)->image);
	ck_assert(cache->images[0]->cfi_tried);
	ck_assert_uint_gt(cache->images[0]->symbols.n, 0);
	ck_assert_uint_eq(n_requests, 1);
}

/* The broker's helper that opens files may have been killed. */
TEST(a_refused_file_is_requested_again_with_the_next_maps)
{
	size_t before;

	refused = true;
	ck_assert_int_ne(walk(), UNWIND_END_ROOT);
	before = n_requests;
	ck_assert_uint_gt(before, 0);
	refused = false;
	/* The next sample causes no request. */
	ck_assert_int_ne(walk(), UNWIND_END_ROOT);
	ck_assert_uint_eq(n_requests, before);
	/* New maps do. */
	read_maps();
	ck_assert_int_eq(walk(), UNWIND_END_ROOT);
	check_leaf_has_a_name();
}

TEST(a_lost_file_is_requested_again_with_the_next_maps)
{
	ck_assert_int_eq(walk(), UNWIND_END_ROOT);
	/* The cache drops the images to make room for others. */
	for (size_t i = 0; i < cache->n; i++)
		image_drop(cache->images[i]);
	cache->generation++;
	refused = true;
	ck_assert_int_ne(walk(), UNWIND_END_ROOT);
	refused = false;
	ck_assert_int_ne(walk(), UNWIND_END_ROOT);
	read_maps();
	ck_assert_int_eq(walk(), UNWIND_END_ROOT);
	check_leaf_has_a_name();
}

/* With or without a symbol. */
TEST(the_start_of_a_function_is_that_of_its_fde)
{
	const uint64_t pc = sample->regs[SAMPLE_X86_64_RIP];
	uint64_t offset, start, again;
	const char *name;

	OK(unwind_symbol_at(space, pc, &name, &offset));
	ck_assert_uint_gt(offset, 0);
	OK(unwind_function_at(space, pc, &start));
	ck_assert_uint_eq(start, pc - offset);
	OK(unwind_function_at(space, start, &again));
	ck_assert_uint_eq(again, start);
	unwind_space_set_symbols(space, UNWIND_SYMBOLS_NONE);
	OK(unwind_function_at(space, pc, &again));
	ck_assert_uint_eq(again, start);
	/* The file's header has no code. */
	ck_assert_int_eq(unwind_function_at(space, space->maps.v[0].start - 1, &start), -ENOENT);
	ck_assert_uint_eq(unwind_after_call(start), start + 1);
}
