/* Tests of when files are requested, with a real program. The test can refuse the requests. */
#include "lib/unwind/space/pc_info.h"
#include "lib/unwind/space/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/unwind/cpu.h"
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

/* What a program can replace its text by. */
static const char *const other_memory[] = {
	"r-xp 00000000 00:00 0 ",
	"rwxp 00000000 00:00 0 [anon:text in huge pages]",
	"r-xs 00000000 00:01 77 /dev/zero (deleted)",
	"r-xp 00000000 00:0f 78 /anon_hugepage (deleted)",
};

/*
 * Sets maps in which all code of files is in other memory, and the other parts of the files are
 * mapped shift bytes beyond where they belong.
 */
static void read_maps_of_moved_text(const char *memory, uint64_t shift)
{
	char *text = target_maps_text(&target), *next = NULL;
	struct buf moved;

	buf_init(&moved, 1u << 20);
	for (char *line = strtok_r(text, "\n", &next); line; line = strtok_r(NULL, "\n", &next)) {
		uint64_t from, to, offset;
		char permissions[5];
		int rest = 0;

		ck_assert_int_eq(sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 "%n", &from,
					&to, permissions, &offset, &rest),
				 4);
		OK(buf_printf(&moved, "%" PRIx64 "-%" PRIx64, from, to));
		if (strchr(line, '/') && permissions[2] == 'x')
			OK(buf_printf(&moved, " %s\n", memory));
		else if (strchr(line, '/') && offset > 0)
			OK(buf_printf(&moved, " %s %" PRIx64 "%s\n", permissions, offset + shift,
				      line + rest));
		else
			OK(buf_printf(&moved, " %s %" PRIx64 "%s\n", permissions, offset,
				      line + rest));
	}
	OK(unwind_space_set_maps(space, buf_string(&moved), moved.len));
	buf_fini(&moved);
	free(text);
}

static struct unwind_stack stack;

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
	OK(unwind_walk(space, sample, sample_size, 64, &stack));
	return stack.end;
}

/* Without its files, a stack that has frame pointers can be guessed to the root. */
static bool is_whole(void)
{
	return walk() == UNWIND_END_ROOT && !stack.has_heuristic;
}

static void check_leaf_has_a_name(void)
{
	const char *name;
	uint64_t offset;

	OK(unwind_symbol_at(space, sample->regs[CPU_PC], &name, &offset));
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
	ck_assert(!is_whole());
	before = n_requests;
	ck_assert_uint_gt(before, 0);
	refused = false;
	/* The next sample causes no request. */
	ck_assert(!is_whole());
	ck_assert_uint_eq(n_requests, before);
	/* New maps do. */
	read_maps();
	ck_assert(is_whole());
	check_leaf_has_a_name();
}

TEST(a_lost_file_is_requested_again_with_the_next_maps)
{
	ck_assert(is_whole());
	/* The cache drops the images to make room for others. */
	for (size_t i = 0; i < cache->n; i++)
		image_drop(cache->images[i]);
	cache->generation++;
	refused = true;
	ck_assert(!is_whole());
	refused = false;
	ck_assert(!is_whole());
	read_maps();
	ck_assert(is_whole());
	check_leaf_has_a_name();
}

/* With or without a symbol. */
TEST(the_start_of_a_function_is_that_of_its_fde)
{
	const uint64_t pc = sample->regs[CPU_PC];
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
	ck_assert_uint_eq(unwind_after_call(start), start + CPU_PC_STEP);
}

/* Text in huge pages, or in shared memory, at its own place: names, CFI and debug_meta stay. */
TESTS(text_in_other_memory_belongs_to_its_file, array_size(other_memory))
{
	struct unwind_image before, after;
	char *path;

	OK(unwind_image_at(space, sample->regs[CPU_PC], &before));
	path = strdup(before.path);
	ck_assert_ptr_nonnull(path);
	before.path = path;
	read_maps_of_moved_text(other_memory[_i], 0);
	ck_assert(is_whole());
	check_leaf_has_a_name();
	OK(unwind_image_at(space, sample->regs[CPU_PC], &after));
	ck_assert_str_eq(after.path, path);
	ck_assert_uint_eq(after.addr, before.addr);
	ck_assert_uint_eq(after.size, before.size);
	ck_assert_uint_eq(after.vmaddr, before.vmaddr);
	ck_assert_uint_eq(after.inode, before.inode);
	ck_assert_ptr_eq(after.id, before.id);
	/* The image is found by the path of its file, too, for the release. */
	OK(unwind_image_of_path(space, path, &after));
	ck_assert_uint_eq(after.addr, before.addr);
	free(path);
}

TEST(memory_at_another_place_than_the_text_belongs_to_no_file)
{
	struct unwind_image image;

	read_maps_of_moved_text(other_memory[0], 4096);
	ck_assert_int_eq(walk(), UNWIND_END_NO_CFI);
	ck_assert_int_eq(unwind_image_at(space, sample->regs[CPU_PC], &image), -ENOENT);
}

/* The file is not requested again with each reading of the maps, but if it was refused. */
TEST(the_file_of_text_in_other_memory_is_kept)
{
	size_t before;

	refused = true;
	read_maps_of_moved_text(other_memory[0], 0);
	ck_assert(!is_whole());
	refused = false;
	read_maps_of_moved_text(other_memory[0], 0);
	ck_assert(is_whole());
	before = n_requests;
	read_maps_of_moved_text(other_memory[0], 0);
	ck_assert(is_whole());
	check_leaf_has_a_name();
	ck_assert_uint_eq(n_requests, before);
	/* The mappings of the file that told the image are gone. */
	read_maps_of_moved_text(other_memory[0], 4096);
	ck_assert(!is_whole());
}
