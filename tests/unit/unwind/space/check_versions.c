/*
 * Tests of mappings that follow each other at one address: two libraries that the tests make
 * (tests/targets/swap_*.c), at addresses that the tests choose. The tests are capture, too: they
 * say what memory looks like.
 */
#include "lib/unwind/space/versions.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "lib/base/watch_part.h"
#include "lib/unwind/cpu.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/space/space.h"
#include "tests/unit/suite.h"

#define AT 0x7f0000000000

enum { ALPHA, BETA, NONE };

static const char *const names[] = {"alpha", "beta"};

static struct unwind_cache *cache;
static struct unwind_space *space;
static int opened;	 /* the library that the broker finds mapped */
static uint64_t work[2]; /* the address of the function of each library, in memory */
static size_t requests;

static int open_library(int library)
{
	char path[4096];
	int fd;

	suite_target(library == ALPHA ? "swap_alpha" : "swap_beta", path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(fd >= 0, "%s", path);
	return fd;
}

static int get_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	(void)start;
	(void)end;
	requests++;
	if (opened == NONE)
		return -ENOENT;
	*ret_fd = open_library(opened);
	return 0;
}

static const struct unwind_files files = {.image = get_image};

/* Sets the maps of a process that has this library at AT. */
static void map(int library)
{
	char text[512] = "";
	struct elf_file f;
	struct stat st;
	GElf_Phdr p;
	int fd;

	opened = library;
	if (library == NONE) {
		(void)snprintf(text, sizeof(text), "1000-2000 r-xp 0 00:00 0 \n");
		OK(unwind_space_set_maps(space, text, strlen(text)));
		return;
	}
	fd = open_library(library);
	OK(fstat(fd, &st));
	OK(elf_file_open(&f, fd));
	for (int i = 0; gelf_getphdr(f.elf, i, &p); i++)
		if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0)
			(void)snprintf(text, sizeof(text),
				       "1000-2000 r-xp 0 00:00 0 \n"
				       "%" PRIx64 "-%" PRIx64 " r-xp %" PRIx64 " %x:%x %ju /%s\n",
				       AT + p.p_vaddr, AT + align_up(p.p_vaddr + p.p_memsz, 4096),
				       p.p_offset, major(st.st_dev), minor(st.st_dev),
				       (uintmax_t)st.st_ino, names[library]);
	elf_file_close(&f);
	close_fd(&fd);
	OK(unwind_space_set_maps(space, text, strlen(text)));
}

/* Reports the bytes that capture finds with this library in memory. */
static void watch(int library)
{
	struct unwind_watch w;
	int fd = library == NONE ? -1 : open_library(library);

	unwind_space_watch_again(space);
	if (!unwind_space_needs_watch(space, &w))
		return;
	for (uint32_t i = 0; i < w.n; i++) {
		uint8_t bytes[WATCH_BYTES];
		/* The first segment of the libraries begins at offset 0. */
		ssize_t n = pread(fd, bytes, w.parts[i].size, (off_t)(w.parts[i].addr - AT));

		unwind_space_watched(
			space, w.list, i,
			n == (ssize_t)w.parts[i].size ? watch_part_hash(bytes, (size_t)n) : 0);
	}
	close_fd(&fd);
}

/* Returns the address of a frame at pc, as a walk gives it. */
static uint64_t frame(uint64_t pc)
{
	static struct unwind_stack stack;
	struct unwind_sample sample = {
		.regs_known = (UINT64_C(1) << CPU_SP) | (UINT64_C(1) << CPU_PC),
	};

	sample.regs[CPU_PC] = pc;
	sample.regs[CPU_SP] = 0x100000;
	unwind_walk_sample(space, &sample, 4, &stack);
	return stack.frames[0].addr;
}

static void check_name(uint64_t addr, const char *expected)
{
	const char *name = "";
	uint64_t offset;
	int r = unwind_symbol_at(space, addr, &name, &offset);

	ck_assert_int_eq(r, expected ? 0 : -ENOENT);
	if (expected)
		ck_assert_str_eq(name, expected);
}

static uint64_t find_function(int library)
{
	const char *name;
	uint64_t offset;

	map(library);
	for (uint64_t a = AT; a < AT + 0x2000; a++)
		if (unwind_symbol_at(space, a, &name, &offset) == 0 &&
		    strcmp(name, names[library]) == 0)
			return a;
	ck_abort_msg("no %s", names[library]);
}

static void new_space(void)
{
	OK(unwind_space_new(cache, &files, NULL, &space));
}

static void set_up(void)
{
	static const struct unwind_cache_options options = {.max_bytes = 1u << 20};

	OK(unwind_cache_new(&options, &cache));
	for (int i = ALPHA; i <= BETA; i++) {
		new_space();
		work[i] = find_function(i);
		unwind_space_free(space);
	}
	new_space();
}

static void tear_down(void)
{
	unwind_space_free(space);
	unwind_cache_free(cache);
}

FIXTURE(set_up, tear_down)

TEST(frames_of_libraries_at_one_address_keep_their_names_and_images)
{
	struct unwind_image a, b;
	uint64_t alpha, beta, start;

	map(ALPHA);
	alpha = frame(work[ALPHA]);
	ck_assert_uint_eq(alpha, work[ALPHA]);
	map(BETA);
	beta = frame(work[BETA]);
	ck_assert_uint_eq(beta, work[BETA] | UINT64_C(1) << 56);
	ck_assert_uint_eq(unwind_plain_addr(beta), work[BETA]);
	check_name(alpha, "alpha");
	check_name(beta, "beta");
	OK(unwind_image_at(space, alpha, &a));
	OK(unwind_image_at(space, beta, &b));
	ck_assert_str_eq(a.path, "/alpha");
	ck_assert_str_eq(b.path, "/beta");
	ck_assert_uint_eq(a.addr, AT);
	ck_assert_uint_eq(b.addr, AT | UINT64_C(1) << 56);
	OK(unwind_image_of_path(space, "/beta", &b));
	ck_assert_uint_eq(b.addr, AT | UINT64_C(1) << 56);
	OK(unwind_function_at(space, beta, &start));
	ck_assert_uint_eq(start, work[BETA] | UINT64_C(1) << 56);
	/* It is back. */
	map(ALPHA);
	ck_assert_uint_eq(frame(work[ALPHA]), alpha);
	map(BETA);
	ck_assert_uint_eq(frame(work[BETA]), beta);
	check_name(alpha, "alpha");
}

TEST(memory_tells_which_of_known_libraries_is_mapped)
{
	uint64_t alpha, beta;
	size_t before;

	map(ALPHA);
	alpha = frame(work[ALPHA]);
	watch(ALPHA);
	map(BETA);
	watch(BETA);
	beta = frame(work[BETA]);
	before = requests;
	for (int i = 0; i < 3; i++) {
		watch(ALPHA);
		ck_assert(!unwind_space_has_doubt(space));
		ck_assert_uint_eq(frame(work[ALPHA]), alpha);
		watch(BETA);
		ck_assert_uint_eq(frame(work[BETA]), beta);
	}
	ck_assert_uint_eq(requests, before);
	/* No part is in memory: nothing is known, and nothing changes. */
	watch(NONE);
	ck_assert_uint_eq(frame(work[BETA]), beta);
	check_name(alpha, "alpha");
	check_name(beta, "beta");
}

/* The maps may be newer than a sample that is walked after they were read. */
TEST(samples_from_before_the_maps_are_those_of_the_library_then)
{
	uint64_t alpha;

	map(ALPHA);
	alpha = frame(work[ALPHA]);
	watch(ALPHA);
	map(BETA);
	ck_assert_uint_eq(frame(work[ALPHA]), alpha);
	watch(BETA);
	check_name(frame(work[BETA]), "beta");
}

TEST(a_mapping_that_memory_does_not_show_counts_as_unmapped)
{
	struct unwind_watch w;
	uint64_t alpha, unknown;

	map(ALPHA);
	alpha = frame(work[ALPHA]);
	watch(ALPHA);
	watch(BETA);
	ck_assert(unwind_space_has_doubt(space));
	unknown = frame(work[ALPHA]);
	ck_assert_uint_eq(unknown, work[ALPHA] | UINT64_C(127) << 56);
	check_name(unknown, NULL);
	check_name(alpha, "alpha");
	map(BETA);
	ck_assert(!unwind_space_has_doubt(space));
	check_name(frame(work[BETA]), "beta");
	check_name(unknown, NULL);
	/* Reports of another list, or of a part that is not in it, change nothing. */
	OK(!unwind_space_needs_watch(space, &w));
	unwind_space_watched(space, w.list + 1, 0, 1);
	unwind_space_watched(space, w.list, (uint32_t)w.n, 1);
	ck_assert(!unwind_space_has_doubt(space));
}

/* A debugger may have changed the bytes that are watched. */
TEST(maps_are_right_if_they_say_the_same_again_and_again)
{
	map(ALPHA);
	(void)frame(work[ALPHA]);
	watch(BETA);
	for (int i = 0; i < SPACE_DOUBTS_MAX; i++) {
		ck_assert(unwind_space_has_doubt(space));
		map(ALPHA);
	}
	ck_assert(!unwind_space_has_doubt(space));
	ck_assert_uint_eq(frame(work[ALPHA]), work[ALPHA]);
	watch(BETA);
	ck_assert_uint_eq(frame(work[ALPHA]), work[ALPHA]);
}

/* Between the reading of the maps and the request for the file. */
TEST(the_file_of_another_library_is_refused)
{
	struct unwind_image image;

	map(ALPHA);
	opened = BETA;
	ck_assert_int_eq(unwind_image_at(space, work[ALPHA], &image), -ENOENT);
	ck_assert(unwind_space_has_doubt(space));
	map(ALPHA);
	check_name(work[ALPHA], "alpha");
	ck_assert(!unwind_space_has_doubt(space));
}

/* The program has mapped the file there to read it. */
TEST(maps_without_the_library_are_not_read_again_for_ever)
{
	map(ALPHA);
	(void)frame(work[ALPHA]);
	map(NONE);
	watch(ALPHA);
	for (int i = 0; i < SPACE_DOUBTS_MAX; i++) {
		ck_assert(unwind_space_has_doubt(space));
		map(NONE);
	}
	ck_assert(!unwind_space_has_doubt(space));
	map(ALPHA);
	ck_assert_uint_eq(frame(work[ALPHA]), work[ALPHA]);
}

/* What capture reads from now on shows whether a library that is known is back. */
TEST(maps_without_the_library_are_read_again_if_it_is_back)
{
	map(ALPHA);
	(void)frame(work[ALPHA]);
	map(NONE);
	ck_assert(!unwind_space_has_doubt(space));
	watch(ALPHA);
	ck_assert(unwind_space_has_doubt(space));
	map(ALPHA);
	ck_assert(!unwind_space_has_doubt(space));
	ck_assert_uint_eq(frame(work[ALPHA]), work[ALPHA]);
}

static bool would_forget(const char *text)
{
	bool forgets;

	OK(unwind_space_would_forget(space, text, strlen(text), &forgets));
	return forgets;
}

/* Memory that the program made code in, with another inode each time. */
static const char *made(unsigned int inode)
{
	static char text[100];

	(void)snprintf(text, sizeof(text),
		       "1000-2000 r-xp 0 00:00 0 \n"
		       "5000-6000 r-xp %x000 00:00 0 [anon:%u]\n",
		       inode, inode);
	return text;
}

TEST(too_many_replaced_mappings_are_forgotten)
{
	for (unsigned int i = 0; i <= VERSIONS_MAX; i++) {
		const char *text = made(i);

		ck_assert(!would_forget(text));
		OK(unwind_space_set_maps(space, text, strlen(text)));
		ck_assert_uint_eq(frame(0x5800), 0x5800 | (uint64_t)i << 56);
	}
	ck_assert_uint_eq(space->versions.n, VERSIONS_MAX);
	/* A mapping that was never looked up needs no place. */
	ck_assert(would_forget(made(1000)));
	OK(unwind_space_set_maps(space, made(1000), strlen(made(1000))));
	ck_assert_uint_eq(space->versions.n, 0);
	ck_assert_uint_eq(frame(0x5800), 0x5800);
	/* The process has ended. */
	ck_assert(would_forget(""));
}

/* The kernel's addresses have no version. */
TEST(upper_bits_of_vsyscall_are_its_own)
{
	static const char text[] = "1000-2000 r-xp 0 00:00 0 \n"
				   "ffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\n";

	OK(unwind_space_set_maps(space, made(0), strlen(made(0))));
	(void)frame(0x5800);
	OK(unwind_space_set_maps(space, made(1), strlen(made(1))));
	(void)frame(0x5800);
	OK(unwind_space_set_maps(space, text, sizeof(text) - 1));
	ck_assert_uint_eq(frame(0xffffffffff600000), 0xffffffffff600000);
	ck_assert_uint_eq(unwind_plain_addr(0xffffffffff600000), 0xffffffffff600000);
}
