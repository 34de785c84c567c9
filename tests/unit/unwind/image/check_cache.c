/*
 * Tests of the cache: the limit of memory, sharing, the mark of the file in use, requests, files
 * that stay open for their lines, and files that were changed.
 */
#include "lib/unwind/image/cache.h"

#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/unwind/space/pc_info.h"
#include "lib/unwind/space/space.h"
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

/* The JIT has put other code where it was. */
TEST(a_later_line_names_an_address_that_is_known)
{
	static const char line[] = "500000 1000 replaced\n";
	const struct unwind_cache_options options = {.max_bytes = SIZE_MAX};
	struct unwind_space *space;
	struct unwind_cache *cache;
	const char *name;
	uint64_t offset;
	int fd;

	make_file(&fd);
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &files, &fd, &space));
	set_maps(space);
	expect_name(space);
	OK(write_all(fd, line, sizeof(line) - 1)); /* the offset is behind the lines */
	OK(unwind_symbol_at(space, CODE + 83, &name, &offset));
	ck_assert_str_eq(name, "replaced");
	ck_assert_uint_eq(offset, 83);
	unwind_space_free(space);
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

static const struct unwind_files all_numbered = {
	.image = numbered_image,
	.debug = no_debug,
	.number = last_number,
};

/* During a request no file is marked. */
TEST(the_mark_names_the_file_that_is_read)
{
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
	OK(unwind_space_new(cache, &all_numbered, NULL, &space));
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

/* What the mark was at the last call of mark_of_clock(), before and after a reading. */
static uint32_t marked[2];

static uint64_t mark_of_clock(void)
{
	marked[0] = marked[1];
	marked[1] = numbered.reading;
	return 0;
}

static int (*const parts[])(struct unwind_cache *c, struct image *i,
			    const struct file_source *source) = {
	cache_rows,
	cache_symbols,
	cache_plt,
};

/* Also if the file is still open, and another one was read since. */
TESTS(each_part_is_read_with_the_mark_of_its_file, 2 * array_size(parts))
{
	const struct unwind_cache_options options = {
		.max_bytes = SIZE_MAX,
		.cpu_ns = mark_of_clock,
		.reading = &numbered.reading,
	};
	const bool is_open = _i >= (int)array_size(parts);
	const char *args[] = {"nanosleep", NULL};
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct file_source source;
	struct image *image;
	struct target t;
	char *maps;

	target_start(&t, "unw_o2", args);
	numbered.target = &t;
	maps = target_maps_text(&t);
	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &all_numbered, NULL, &space));
	unwind_space_set_symbols(space, UNWIND_SYMBOLS_NONE);
	OK(unwind_space_set_maps(space, maps, strlen(maps)));
	cache_begin(cache);
	image = space_certain_mapping(space, space->maps.v[0].start)->image;
	ck_assert_ptr_nonnull(image);
	image_drop(image);
	if (!is_open) {
		cache_end(cache);
		cache_begin(cache);
	}
	ck_assert_ptr_nonnull(space_certain_mapping(space, space->maps.v[1].start)->image);
	ck_assert_uint_eq(numbered.reading, 2);
	source = space_source(space, &space->maps.v[0]);
	OK(parts[_i % (int)array_size(parts)](cache, image, &source));
	ck_assert_uint_eq(numbered.last, is_open ? 2 : 3);
	ck_assert_uint_eq(marked[0], image->number);
	ck_assert_uint_eq(marked[1], image->number);
	ck_assert_uint_eq(image->number, is_open ? 1 : 3);
	cache_end(cache);
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
	/* Rows, symbols and, if the code begins with a PLT, the names of its stubs were read. */
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

/*
 * Copies of a program with debug information, unlinked. Copy i is mapped at COPY_AT(i), by the
 * segment with the program's code.
 */
#define COPIES	   2
#define COPY_AT(i) (UINT64_C(0x10000000) * ((i) + 1))

static struct {
	int fds[COPIES];
	uint64_t offset, size; /* of the segment in the file */
	uint32_t opened;
	bool gone; /* the target has ended: no file can be opened */
} copies;

static int open_copy(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	char path[64];

	(void)ctx, (void)end;
	if (copies.gone)
		return -ESRCH;
	copies.opened++;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", copies.fds[start / COPY_AT(0) - 1]);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static const struct unwind_files copied_files = {.image = open_copy, .debug = no_debug};

static void copy_bytes(int from, int to)
{
	struct stat st;
	uint8_t *bytes;

	OK(fstat(from, &st));
	bytes = malloc((size_t)st.st_size);
	OK(elf_file_pread(from, bytes, (size_t)st.st_size, 0));
	OK(write_all(to, bytes, (size_t)st.st_size));
	free(bytes);
}

/* Makes a file without a name. It is not in /tmp, which may be a file system in memory. */
static int make_unlinked(void)
{
	char path[PATH_MAX + 16], self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int fd;

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	(void)snprintf(path, sizeof(path), "%s/copy-XXXXXX", dirname(self));
	fd = mkostemp(path, O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	OK(unlink(path));
	return fd;
}

static void find_code(int fd)
{
	Elf64_Ehdr ehdr;
	Elf64_Phdr p;

	OK(elf_file_pread(fd, &ehdr, sizeof(ehdr), 0));
	for (unsigned int i = 0; i < ehdr.e_phnum; i++) {
		OK(elf_file_pread(fd, &p, sizeof(p), ehdr.e_phoff + i * sizeof(p)));
		if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0)
			break;
	}
	copies.offset = p.p_offset & ~UINT64_C(4095);
	copies.size = align_up(p.p_offset - copies.offset + p.p_filesz, 4096);
}

static void make_copies(void)
{
	const char *args[] = {"nanosleep", NULL};
	char path[64];
	struct target t;
	int program;

	target_start(&t, "unw_o2", args);
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)t.pid);
	program = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(program, 0);
	for (size_t i = 0; i < COPIES; i++) {
		copies.fds[i] = make_unlinked();
		copy_bytes(program, copies.fds[i]);
	}
	find_code(program);
	close_fd(&program);
	target_stop(&t);
	copies.opened = 0;
	copies.gone = false;
}

static void close_copies(void)
{
	for (size_t i = 0; i < COPIES; i++)
		close_fd(&copies.fds[i]);
}

/* Makes a space that maps all copies. */
static struct unwind_space *map_in(struct unwind_cache *cache, const struct unwind_files *their)
{
	struct unwind_space *space;
	char text[256];
	int n = 0;

	for (uint64_t i = 0; i < COPIES; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "%llx-%llx r-xp %llx fe:01 %d /copy%d\n",
			      (unsigned long long)COPY_AT(i),
			      (unsigned long long)(COPY_AT(i) + copies.size),
			      (unsigned long long)copies.offset, (int)i + 1, (int)i);
	OK(unwind_space_new(cache, their, NULL, &space));
	unwind_space_set_symbols(space, UNWIND_SYMBOLS_LINES);
	OK(unwind_space_set_maps(space, text, (size_t)n));
	return space;
}

static struct unwind_space *map_copies(size_t max_files)
{
	const struct unwind_cache_options options = {.max_bytes = SIZE_MAX, .max_files = max_files};
	struct unwind_cache *cache;

	OK(unwind_cache_new(&options, &cache));
	return map_in(cache, &copied_files);
}

static void free_space(struct unwind_space *space)
{
	struct unwind_cache *cache = space->cache;

	unwind_space_free(space);
	unwind_cache_free(cache);
}

/* Looks up an address of copy i, as the walk of a sample does. */
static struct image *sample_in(struct unwind_space *space, uint64_t i)
{
	struct image *image;

	cache_begin(space->cache);
	image = pc_info_at(space, COPY_AT(i))->image;
	cache_end(space->cache);
	ck_assert_ptr_nonnull(image);
	return image;
}

/* Returns whether some address of copy i has lines. */
static bool has_lines(struct unwind_space *space, uint64_t i)
{
	struct unwind_line lines[UNWIND_LINES_MAX];
	size_t n;

	for (uint64_t pc = COPY_AT(i); pc < COPY_AT(i) + copies.size; pc++)
		if (unwind_lines_at(space, pc, lines, &n) == 0)
			return true;
	return false;
}

TEST(lines_are_read_after_the_end_of_the_target)
{
	struct unwind_space *space;
	struct image *image;

	make_copies();
	space = map_copies(COPIES);
	image = sample_in(space, 0);
	ck_assert_int_ge(image->lines_file.fd, 0);
	copies.gone = true;
	ck_assert(has_lines(space, 0));
	ck_assert_uint_eq(unwind_space_take_lines_lost(space), 0);
	ck_assert_int_eq(image->lines_file.fd, -1);
	ck_assert_uint_eq(copies.opened, 1);
	/* Of the other copy there was no sample. */
	ck_assert(!has_lines(space, 1));
	ck_assert_uint_eq(unwind_space_take_lines_lost(space), copies.size);
	free_space(space);
	close_copies();
}

TEST(the_file_that_was_opened_first_is_closed_first)
{
	struct unwind_space *space;
	const struct image *first, *second;

	make_copies();
	space = map_copies(1);
	first = sample_in(space, 0);
	second = sample_in(space, 1);
	ck_assert_int_eq(first->lines_file.fd, -1);
	ck_assert_int_ge(second->lines_file.fd, 0);
	/* It is not opened again and again. */
	(void)sample_in(space, 0);
	ck_assert_int_eq(first->lines_file.fd, -1);
	copies.gone = true;
	ck_assert(!has_lines(space, 0));
	ck_assert_uint_eq(unwind_space_take_lines_lost(space), copies.size);
	ck_assert(has_lines(space, 1));
	ck_assert_uint_eq(unwind_space_take_lines_lost(space), 0);
	free_space(space);
	/* As long as the target lives, the file is opened again. */
	copies.gone = false;
	space = map_copies(0);
	ck_assert_int_eq(sample_in(space, 0)->lines_file.fd, -1);
	ck_assert(has_lines(space, 0));
	free_space(space);
	close_copies();
}

TEST(a_file_that_nobody_maps_is_closed)
{
	struct unwind_space *space;
	const struct image *image;

	make_copies();
	space = map_copies(COPIES);
	image = sample_in(space, 0);
	ck_assert_int_ge(image->lines_file.fd, 0);
	OK(unwind_space_set_maps(space, "", 0));
	ck_assert_uint_eq(image->refs, 0);
	ck_assert_int_eq(image->lines_file.fd, -1);
	free_space(space);
	close_copies();
}

/* Copies of files that a server would have to answer for. */
TEST(open_copies_in_memory_have_a_limit_of_bytes)
{
	struct unwind_space *space;
	const struct image *first;

	make_copies();
	for (size_t i = 0; i < COPIES; i++) {
		int copy = memfd_create("copy", MFD_CLOEXEC);

		ck_assert_int_ge(copy, 0);
		copy_bytes(copies.fds[i], copy);
		OK(ftruncate(copy, CACHE_OPEN_MEMORY_MAX / 2 + 1));
		close_fd(&copies.fds[i]);
		copies.fds[i] = copy;
	}
	space = map_copies(COPIES);
	first = sample_in(space, 0);
	ck_assert_int_ge(first->lines_file.fd, 0);
	ck_assert_int_ge(sample_in(space, 1)->lines_file.fd, 0);
	ck_assert_int_eq(first->lines_file.fd, -1);
	free_space(space);
	close_copies();
}

/* Returns the result of cache_fd() for the file of copy 0, requested in a new call. */
static int open_again(struct unwind_space *space)
{
	struct space_mapping *m;
	struct file_source source;
	int fd;

	cache_begin(space->cache);
	m = space_certain_mapping(space, COPY_AT(0));
	source = space_source(space, &m->file);
	fd = cache_fd(space->cache, m->image, &source);
	cache_end(space->cache);
	return fd;
}

/*
 * Sets the times of the last access and modification, and moves the change time, which before Linux
 * 6.13 has steps of a tick.
 */
static void set_times(int fd, const struct timespec times[2])
{
	struct stat before, after;

	OK(fstat(fd, &before));
	do {
		OK(futimens(fd, times));
		OK(fstat(fd, &after));
	} while (after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
}

/* Sets these times to now + seconds. */
static void touch(int fd, time_t seconds)
{
	struct timespec times[2];

	OK(clock_gettime(CLOCK_REALTIME, &times[0]));
	times[0].tv_sec += seconds;
	times[1] = times[0];
	set_times(fd, times);
}

/* Finds the build-id in the file of copy 0. */
static off_t find_build_id(const struct image *image)
{
	struct stat st;
	uint8_t *bytes;
	const uint8_t *found;
	off_t at;

	ck_assert(image->id.is_real);
	OK(fstat(copies.fds[0], &st));
	bytes = malloc((size_t)st.st_size);
	OK(elf_file_pread(copies.fds[0], bytes, (size_t)st.st_size, 0));
	found = memmem(bytes, (size_t)st.st_size, image->id.bytes, image->id.size);
	ck_assert_ptr_nonnull(found);
	at = found - bytes;
	free(bytes);
	return at;
}

static void write_word(off_t at, uint32_t word)
{
	ck_assert_int_eq(pwrite(copies.fds[0], &word, sizeof(word), at), sizeof(word));
}

TEST(a_file_is_the_same_as_long_as_its_build_id_is)
{
	struct unwind_space *space;
	const struct image *image;
	struct stat before, after;

	make_copies();
	space = map_copies(COPIES);
	image = sample_in(space, 0);
	OK(fstat(copies.fds[0], &before));
	do {
		OK(fchmod(copies.fds[0], 0700));
		touch(copies.fds[0], 1000);
		OK(fstat(copies.fds[0], &after));
	} while (after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	ck_assert_int_ge(open_again(space), 0);
	ck_assert_uint_eq(image->identity.file.ctime_ns, file_identity_of(&after).ctime_ns);
	ck_assert(has_lines(space, 0));
	/* Another file was written over it. */
	write_word(find_build_id(image), 0x12345678);
	touch(copies.fds[0], 2000);
	ck_assert_int_eq(open_again(space), -ESTALE);
	free_space(space);
	/* Between the sample and the end of the chunk. */
	space = map_copies(COPIES);
	image = sample_in(space, 0);
	write_word(find_build_id(image), 0x9abcdef0);
	touch(copies.fds[0], 3000);
	ck_assert(!has_lines(space, 0));
	ck_assert_uint_eq(unwind_space_take_lines_lost(space), copies.size);
	free_space(space);
	close_copies();
}

/* Replaces the file of copy 0 by a copy in memory, too large to be known by its contents. */
static void copy_anew(void)
{
	int copy = memfd_create("copy", MFD_CLOEXEC);

	ck_assert_int_ge(copy, 0);
	copy_bytes(copies.fds[0], copy);
	OK(ftruncate(copy, IMAGE_CONTENT_MAX + 1));
	close_fd(&copies.fds[0]);
	copies.fds[0] = copy;
}

/* A file on FUSE is copied at each request. */
TEST(a_new_copy_in_memory_is_the_same_file)
{
	struct unwind_space *space;
	const struct image *image;
	off_t at;

	make_copies();
	copy_anew();
	space = map_copies(COPIES);
	image = sample_in(space, 0);
	copy_anew();
	ck_assert_int_ge(open_again(space), 0);
	at = find_build_id(image);
	copy_anew();
	write_word(at, 0x12345678);
	ck_assert_int_eq(open_again(space), -ESTALE);
	free_space(space);
	close_copies();
}

TEST(without_a_build_id_section_headers_and_modification_time_count)
{
	struct unwind_space *space;
	struct timespec times[2];
	struct stat before, after;
	Elf64_Ehdr ehdr;

	make_copies();
	space = map_copies(COPIES);
	/* The type of the note is before its name "GNU" and the build-id. */
	write_word(find_build_id(sample_in(space, 0)) - 8, 0x1234);
	free_space(space);
	space = map_copies(COPIES);
	ck_assert(!sample_in(space, 0)->id.is_real);
	OK(fstat(copies.fds[0], &before));
	times[0] = before.st_atim;
	times[1] = before.st_mtim;
	do {
		OK(fchmod(copies.fds[0], 0700));
		OK(fstat(copies.fds[0], &after));
	} while (after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	ck_assert_int_ge(open_again(space), 0);
	touch(copies.fds[0], 1000);
	ck_assert_int_eq(open_again(space), -ESTALE);
	set_times(copies.fds[0], times);
	ck_assert_int_ge(open_again(space), 0);
	OK(elf_file_pread(copies.fds[0], &ehdr, sizeof(ehdr), 0));
	/* The flags of the second section. */
	write_word((off_t)(ehdr.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_flags)),
		   0x7ff);
	set_times(copies.fds[0], times);
	ck_assert_int_eq(open_again(space), -ESTALE);
	free_space(space);
	close_copies();
}

/* Leaves the file of copy 0 without symbols and debug information. */
static void strip_copy(void)
{
	Elf64_Ehdr ehdr;

	OK(elf_file_pread(copies.fds[0], &ehdr, sizeof(ehdr), 0));
	for (unsigned int i = 0; i < ehdr.e_shnum; i++) {
		const uint64_t at = ehdr.e_shoff + i * sizeof(Elf64_Shdr);
		Elf64_Shdr shdr;

		OK(elf_file_pread(copies.fds[0], &shdr, sizeof(shdr), at));
		if (shdr.sh_type == SHT_SYMTAB ||
		    (shdr.sh_type == SHT_PROGBITS && (shdr.sh_flags & SHF_ALLOC) == 0))
			write_word((off_t)(at + offsetof(Elf64_Shdr, sh_type)), SHT_NOBITS);
	}
}

static int debug_error;

/* The debug file of copy 0 is copy 1. */
static int open_debug_copy(void *ctx, const char *build_id, int *ret_fd)
{
	(void)build_id;
	return debug_error != 0 ? debug_error : open_copy(ctx, COPY_AT(1), 0, ret_fd);
}

static bool has_name(struct unwind_space *space, const char *expected)
{
	const char *name;
	uint64_t offset;

	for (uint64_t pc = COPY_AT(0); pc < COPY_AT(0) + copies.size; pc++)
		if (unwind_symbol_at(space, pc, &name, &offset) == 0 && strcmp(name, expected) == 0)
			return true;
	return false;
}

/* All targets share the image. */
TEST(a_debug_file_that_an_ended_target_cannot_give_is_that_of_the_next_target)
{
	static const struct unwind_files with_debug = {.image = open_copy,
						       .debug = open_debug_copy};
	static const int errors[] = {-ENOENT, -ESRCH};
	const struct unwind_cache_options options = {.max_bytes = SIZE_MAX, .max_files = COPIES};
	struct unwind_space *ended, *next;
	struct unwind_cache *cache;

	for (size_t i = 0; i < array_size(errors); i++) {
		const bool is_found = errors[i] == -ESRCH;

		make_copies();
		strip_copy();
		OK(unwind_cache_new(&options, &cache));
		ended = map_in(cache, &with_debug);
		debug_error = errors[i];
		(void)sample_in(ended, 0);
		ck_assert(!has_name(ended, "main") && !has_lines(ended, 0));
		ck_assert_uint_eq(unwind_space_take_lines_lost(ended), is_found ? copies.size : 0);
		debug_error = 0;
		next = map_in(cache, &with_debug);
		ck_assert_ptr_eq(sample_in(next, 0), sample_in(ended, 0));
		ck_assert(has_name(next, "main") == is_found);
		ck_assert(has_lines(next, 0) == is_found);
		unwind_space_free(ended);
		free_space(next);
		close_copies();
	}
}
