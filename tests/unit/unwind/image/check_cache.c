/* Tests of the cache: the limit of memory, sharing, the mark of the file in use, and requests. */
#include "lib/unwind/image/cache.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/unwind/space/space.h"
#include "lib/unwind/space/pc_info.h"
#include "tests/unit/map_files.h"
#include "tests/unit/suite.h"
#include "tests/unit/unwind/record.h"

#define CODE  UINT64_C(0x500000)
#define LINES 20000
/* Each takes a megabyte or two. */
#define SPACES 8

static const char maps_text[] = "500000-600000 rwxp 00000000 00:00 0 \n";

static int no_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx, (void)start, (void)end, (void)ret_fd;
	return -ENOENT;
}

static int no_debug(void *ctx, const char *build_id, int *ret_fd)
{
	(void)ctx, (void)build_id, (void)ret_fd;
	return -ENOENT;
}

static int open_perf_map(void *ctx, int *ret_fd)
{
	*ret_fd = dup(*(int *)ctx);
	return *ret_fd < 0 ? -errno : 0;
}

static const struct unwind_files files = {
	.image = no_image,
	.debug = no_debug,
	.perf_map = open_perf_map,
};

static void make_file(int *fd)
{
	int copy;
	FILE *out;

	*fd = memfd_create("perf", MFD_CLOEXEC);
	copy = dup(*fd);
	out = fdopen(copy, "w");
	ck_assert_ptr_nonnull(out);
	for (unsigned int i = 0; i < LINES; i++)
		ck_assert_int_gt(fprintf(out, "%x 8 a_function_of_this_name_%u\n",
					 (unsigned int)CODE + 8 * i, i),
				 0);
	OK(fclose(out));
}

static void set_maps(struct unwind_space *s)
{
	OK(unwind_space_set_maps(s, maps_text, sizeof(maps_text) - 1));
}

static void expect_name(struct unwind_space *s)
{
	const char *name;
	uint64_t offset;

	OK(unwind_symbol_at(s, CODE + 83, &name, &offset));
	ck_assert_str_eq(name, "a_function_of_this_name_10");
	ck_assert_uint_eq(offset, 3);
}

/* A dropped perf map is read again when it is needed. */
TEST(above_the_limit_the_least_recently_used_perf_map_is_dropped)
{
	struct unwind_cache_options options = {.max_bytes = SIZE_MAX};
	struct unwind_space *spaces[SPACES];
	struct unwind_cache *cache;
	int fd;

	make_file(&fd);
	OK(unwind_cache_new(&options, &cache));
	for (size_t i = 0; i < SPACES; i++) {
		OK(unwind_space_new(cache, &files, &fd, &spaces[i]));
		set_maps(spaces[i]);
		expect_name(spaces[i]);
		if (i == 0)
			cache->options.max_bytes = 3 * cache_bytes(cache) + 1;
		ck_assert_uint_ge(cache_bytes(cache), (size_t)1 << 20);
		ck_assert_uint_le(cache_bytes(cache), cache->options.max_bytes);
	}
	for (size_t i = 0; i < SPACES; i++)
		ck_assert_int_eq(perf_map_bytes(&spaces[i]->perf_map) > 0, i >= SPACES - 3);
	for (size_t i = 0; i < SPACES; i++) {
		expect_name(spaces[i]);
		ck_assert_uint_le(cache_bytes(cache), cache->options.max_bytes);
	}
	/* Spaces can be freed in any order. */
	unwind_space_free(spaces[3]);
	ck_assert_uint_le(cache_bytes(cache), cache->options.max_bytes);
	for (size_t i = 0; i < SPACES; i++)
		if (i != 3)
			unwind_space_free(spaces[i]);
	ck_assert_uint_eq(cache_bytes(cache), 0);
	unwind_cache_free(cache);
	close_fd(&fd);
}

/* The limit of bytes that each further process of the program may take. */
#define SAME	   200
#define EACH_BYTES (48u << 10)

static size_t in_use(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

TEST(processes_of_one_program_share_its_images)
{
	const struct unwind_cache_options options = {.max_bytes = 64u << 20};
	static struct unwind_space *spaces[SAME];
	static struct unwind_stack stack;
	const char *args[] = {"nanosleep", NULL};
	struct record_sample *sample;
	struct unwind_cache *cache;
	size_t size, first = 0, shared = 0;
	struct target t;
	char *maps;

	target_start(&t, "unw_o2", args);
	(void)target_wait_blocked(&t, t.pid);
	thread_seize(t.pid);
	thread_interrupt(t.pid);
	sample = record_thread(&t, t.pid, &size);
	maps = target_maps_text(&t);
	OK(unwind_cache_new(&options, &cache));
	for (size_t i = 0; i < SAME; i++) {
		OK(unwind_space_new(cache, &target_files, &t, &spaces[i]));
		OK(unwind_space_set_maps(spaces[i], maps, strlen(maps)));
		OK(unwind_walk(spaces[i], sample, size, 64, &stack));
		ck_assert_int_eq(stack.end, UNWIND_END_ROOT);
		for (size_t k = 0; k < stack.n; k++) {
			const char *name;
			uint64_t offset;

			(void)!unwind_symbol_at(spaces[i], stack.frames[k].addr - 1, &name,
						&offset);
		}
		if (i == 0) {
			first = in_use();
			shared = cache_bytes(cache);
		}
	}
	ck_assert_uint_eq(cache_bytes(cache), shared);
	ck_assert_uint_gt(in_use(), first);
	ck_assert_uint_lt((in_use() - first) / (SAME - 1), EACH_BYTES);
	for (size_t i = 0; i < SAME; i++)
		unwind_space_free(spaces[i]);
	unwind_cache_free(cache);
	free(maps);
	free(sample);
	target_stop(&t);
}

/* Numbers files in the order of requests. */
static struct {
	struct target *target;
	uint32_t reading, last;
	bool was_reading; /* the number marked while a request was answered */
} numbered;

static int numbered_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	numbered.was_reading |= numbered.reading != 0;
	numbered.last++;
	return target_files.image(numbered.target, start, end, ret_fd);
}

/* The clock of the cache, called during the reading of lines: checks that a file is marked then. */
static uint64_t check_mark(void)
{
	numbered.was_reading |= numbered.reading == 0;
	return 0;
}

static uint32_t last_number(void *ctx)
{
	(void)ctx;
	return numbered.last;
}

/* During a request no file is marked. */
TEST(the_mark_names_the_file_that_is_read)
{
	static const struct unwind_files numbering = {
		.image = numbered_image,
		.debug = no_debug,
		.number = last_number,
	};
	const struct unwind_cache_options options = {
		.max_bytes = SIZE_MAX,
		.cpu_ns = check_mark,
		.reading = &numbered.reading,
	};
	const char *args[] = {"nanosleep", NULL};
	struct unwind_line lines[UNWIND_LINES_MAX];
	struct unwind_cache *cache;
	struct unwind_space *space;
	const struct pc_info *info;
	struct target t;
	const char *name;
	uint64_t offset, pc;
	char *maps;
	size_t n;

	target_start(&t, "unw_o2", args);
	numbered.target = &t;
	maps = target_maps_text(&t);
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &numbering, NULL, &space));
	unwind_space_set_symbols(space, UNWIND_SYMBOLS_LINES);
	OK(unwind_space_set_maps(space, maps, strlen(maps)));
	/* Two files: the one looked up last is marked. */
	for (uint32_t i = 0; i < 2; i++) {
		pc = space->maps.v[i].start;
		cache_begin(cache);
		ck_assert_ptr_nonnull(pc_info_at(space, pc)->image);
		ck_assert_uint_eq(numbered.last, i + 1);
		ck_assert_uint_eq(numbered.reading, i + 1);
		cache_end(cache);
		ck_assert_uint_eq(numbered.reading, 0);
	}
	cache_begin(cache);
	info = pc_info_at(space, space->maps.v[0].start);
	ck_assert_uint_eq(numbered.reading, info->image->number);
	ck_assert_uint_eq(numbered.reading, 1);
	cache_end(cache);
	pc = space->maps.v[0].start;
	/* The mark stays until unwind_names_done(), because the caller uses the texts. */
	for (; unwind_symbol_at(space, pc, &name, &offset) != 0; pc++)
		ck_assert_uint_eq(numbered.reading, 0);
	ck_assert_uint_eq(numbered.reading, 1);
	unwind_names_done(space);
	ck_assert_uint_eq(numbered.reading, 0);
	for (; unwind_lines_at(space, pc, lines, &n) != 0; pc++)
		ck_assert_uint_eq(numbered.reading, 0);
	ck_assert_uint_eq(numbered.reading, space->mappings[0].image->number);
	unwind_names_done(space);
	ck_assert_uint_eq(numbered.reading, 0);
	ck_assert(!numbered.was_reading);
	unwind_space_free(space);
	unwind_cache_free(cache);
	free(maps);
	target_stop(&t);
}

/* Sets the identities of all mapped files, as the broker gives them. */
static void know_files(struct unwind_space *s, pid_t pid)
{
	char path[96];

	for (size_t i = 0; i < s->maps.n; i++) {
		const struct map *map = &s->maps.v[i];
		struct mapped_file known = {.start = map->start};
		struct stat st;

		(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid,
			       (unsigned long)map->start, (unsigned long)map->end);
		if (map->inode == 0 || stat(path, &st) < 0)
			continue;
		known.file = file_identity_of(&st);
		unwind_space_set_identities(s, &known, 1);
	}
}

/* Looks up an address in each mapping. Returns the number of requests. */
static uint32_t look_up_all(struct unwind_space *s)
{
	const uint32_t before = numbered.last;

	for (size_t i = 0; i < s->maps.n; i++) {
		/* The kernel gives no copy of the page that old programs call. */
		if (strcmp(s->maps.v[i].path, "[vsyscall]") == 0)
			continue;
		cache_begin(s->cache);
		(void)pc_info_at(s, s->maps.v[i].start);
		cache_end(s->cache);
	}
	return numbered.last - before;
}

/* The same program runs in a further process. */
TEST(a_file_with_a_known_identity_is_not_requested_again)
{
	static const struct unwind_files numbering = {.image = numbered_image, .debug = no_debug};
	const struct unwind_cache_options options = {.max_bytes = SIZE_MAX};
	const char *args[] = {"nanosleep", NULL};
	struct unwind_space *spaces[3];
	struct unwind_cache *cache;
	struct mapped_file other;
	struct target t;
	char *maps;
	uint32_t n;

	/* Without CAP_CHECKPOINT_RESTORE identities are not known. */
	if (map_files_are_closed())
		return;
	target_start(&t, "unw_o2", args);
	(void)target_wait_blocked(&t, t.pid);
	numbered.target = &t;
	maps = target_maps_text(&t);
	OK(unwind_cache_new(&options, &cache));
	for (size_t i = 0; i < 3; i++) {
		OK(unwind_space_new(cache, &numbering, NULL, &spaces[i]));
		OK(unwind_space_set_maps(spaces[i], maps, strlen(maps)));
		know_files(spaces[i], t.pid);
	}
	n = look_up_all(spaces[0]);
	ck_assert_uint_ge(n, 3); /* itself, libc, the vDSO */
	ck_assert_uint_eq(look_up_all(spaces[1]), 0);
	for (size_t i = 0; i < spaces[0]->maps.n; i++)
		ck_assert_ptr_eq(spaces[0]->mappings[i].image, spaces[1]->mappings[i].image);
	/* One of the mappings has another file. */
	other = (struct mapped_file){
		.start = spaces[2]->maps.v[0].start,
		.file = spaces[2]->mappings[0].identity,
	};
	other.file.ctime_ns++;
	unwind_space_set_identities(spaces[2], &other, 1);
	ck_assert_uint_eq(look_up_all(spaces[2]), 1);
	for (size_t i = 0; i < 3; i++)
		unwind_space_free(spaces[i]);
	unwind_cache_free(cache);
	free(maps);
	target_stop(&t);
}

/* A clock by which each reading takes as long as 100 calls may. */
static uint64_t slow_clock(void)
{
	static uint64_t now_ns;

	return now_ns += 100 * CACHE_READ_NS;
}

/* Files that do not fit into the cache together. */
TEST(a_dropped_image_is_read_again_after_calls_that_make_up_for_the_time_of_its_reading)
{
	static const struct unwind_files numbering = {.image = numbered_image, .debug = no_debug};
	const struct unwind_cache_options options = {.max_bytes = 1, .cpu_ns = slow_clock};
	const char *args[] = {"nanosleep", NULL};
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct target t;
	char *maps;
	uint32_t n;

	target_start(&t, "unw_o2", args);
	(void)target_wait_blocked(&t, t.pid);
	numbered.target = &t;
	maps = target_maps_text(&t);
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &numbering, NULL, &space));
	OK(unwind_space_set_maps(space, maps, strlen(maps)));
	n = look_up_all(space);
	ck_assert_uint_ge(n, 3); /* itself, libc, the vDSO */
	OK(unwind_space_set_maps(space, maps, strlen(maps)));
	ck_assert_uint_eq(look_up_all(space), 0);
	/* Rows, symbols and, of a library whose code begins with its PLT, names of stubs were read. */
	for (int i = 0; i < 3 * 100; i++) {
		cache_begin(cache);
		cache_end(cache);
	}
	OK(unwind_space_set_maps(space, maps, strlen(maps)));
	ck_assert_uint_ge(look_up_all(space), n - 1);
	unwind_space_free(space);
	unwind_cache_free(cache);
	free(maps);
	target_stop(&t);
}
