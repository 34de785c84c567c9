/*
 * Samples that were recorded once, of a program that is kept beside them:
 * tests/golden/stacks, where record.py says how. Nothing is traced here, so
 * this shows the unwinder alone, on any machine.
 */
#include "lib/unwind/unwind.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/unit/golden.h"
#include "tests/unit/suite.h"

#define DIRECTORY "tests/golden/stacks/x86_64"
#define OTHER	  "tests/golden/stacks/aarch64/stopped.sample"

#define FILE_MAX (1u << 20)

static const char *const kinds[] = {
	"blocked", "stopped", "signal",	 "bare",    "bare_blocked",
	"turn_00", "turn_02", "turn_03", "turn_06", "turn_09",
	"turn_1d", "turn_21", "turn_22", "turn_24",
};
#define N_KINDS ((int)array_size(kinds))

static struct unwind_cache *cache;
static struct unwind_space *space;
static struct unwind_stack out;

static int open_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	(void)end;
	/* The only file; the other mappings are the kernel's. */
	if (start != 0x400000)
		return -ENOENT;
	*ret_fd = open(DIRECTORY "/tiny", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static int no_debug(void *ctx, const char *build_id, int *ret_fd)
{
	(void)ctx;
	(void)build_id;
	(void)ret_fd;
	return -ENOENT;
}

static const struct unwind_files files = {
	.image = open_image,
	.debug = no_debug,
};

/* The caller frees it. */
static char *read_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf b;

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	buf_init(&b, FILE_MAX);
	ck_assert_int_eq(buf_read_fd(&b, fd), 0);
	close_fd(&fd);
	*ret_size = b.len;
	return b.data;
}

/* As the ring would give it; the caller frees it. */
static struct record_sample *read_sample(const char *kind, size_t *ret_size)
{
	char path[128];

	(void)snprintf(path, sizeof(path), DIRECTORY "/%s.sample", kind);
	return (void *)read_file(path, ret_size);
}

static void set_up(void)
{
	const struct unwind_cache_options options = {.max_bytes = 1u << 20};
	size_t size;
	char *maps = read_file(DIRECTORY "/maps", &size);

	ck_assert_int_eq(unwind_cache_new(&options, &cache), 0);
	ck_assert_int_eq(unwind_space_new(cache, &files, NULL, &space), 0);
	ck_assert_int_eq(unwind_space_set_maps(space, maps, size), 0);
	free(maps);
}

static void tear_down(void)
{
	unwind_space_free(space);
	unwind_cache_free(cache);
}

/* What was found, as it stands in the files. */
static void describe(struct buf *b)
{
	for (size_t i = 0; i < out.n; i++) {
		const struct unwind_frame *f = &out.frames[i];
		const char *name = "?";
		uint64_t offset = 0;

		if (unwind_symbol_at(space, f->addr - !f->is_leaf, &name,
				     &offset))
			name = "?";
		ck_assert_int_eq(buf_printf(b,
					    "%#" PRIx64 " %s+0x%" PRIx64 "%s\n",
					    f->addr, name, offset,
					    f->by_heuristic ? " guessed" : ""),
				 0);
	}
	ck_assert_int_eq(buf_printf(b, "%s\n", unwind_end_name(out.end)), 0);
}

static void check_frames(const char *kind)
{
	char path[128];
	struct buf b;

	buf_init(&b, FILE_MAX);
	describe(&b);
	(void)snprintf(path, sizeof(path), DIRECTORY "/%s.frames", kind);
	golden_check(buf_string(&b), path);
	buf_fini(&b);
}

/* Twice: the second walk has what the first one left behind. */
START_TEST(test_frames)
{
	size_t size;
	struct record_sample *s = read_sample(kinds[_i], &size);

	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(unwind_walk(space, s, size, 64, &out), 0);
		check_frames(kinds[_i]);
	}
	free(s);
}
END_TEST

/* One after the other, as if one thread had done it all. */
START_TEST(test_one_thread)
{
	for (int i = 0; i < 2 * N_KINDS; i++) {
		const char *kind = kinds[i % N_KINDS];
		size_t size;
		struct record_sample *s = read_sample(kind, &size);

		s->h.tid = 1;
		ck_assert_int_eq(unwind_walk(space, s, size, 64, &out), 0);
		check_frames(kind);
		free(s);
	}
}
END_TEST

/* A stack that is cut off anywhere: the same frames, only fewer. */
START_TEST(test_cut)
{
	static struct unwind_stack whole;
	size_t size;
	struct record_sample *s = read_sample(kinds[_i], &size);
	const uint32_t stack_size = s->stack_size;
	size_t shorter = 0;

	ck_assert_int_eq(unwind_walk(space, s, size, 64, &out), 0);
	whole = out;
	for (uint32_t n = 0; n < stack_size; n += 8) {
		s->stack_size = n;
		ck_assert_int_eq(
			unwind_walk(space, s, sizeof(*s) + n, 64, &out), 0);
		ck_assert_uint_le(out.n, whole.n);
		if (out.n == whole.n)
			break;
		ck_assert_int_ne(out.end, UNWIND_END_ROOT);
		for (size_t i = 0; i < out.n; i++)
			ck_assert_uint_eq(out.frames[i].addr,
					  whole.frames[i].addr);
		shorter++;
	}
	ck_assert_uint_gt(shorter, whole.n);
	free(s);
}
END_TEST

START_TEST(test_other_processor)
{
	size_t size;
	char *bytes = read_file(OTHER, &size);

	ck_assert_int_eq(unwind_walk(space, (void *)bytes, size, 64, &out),
			 -EINVAL);
	free(bytes);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("unwind/recorded");
	TCase *tc = tcase_create("recorded");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, test_frames, 0, N_KINDS);
	tcase_add_test(tc, test_one_thread);
	tcase_add_loop_test(tc, test_cut, 0, N_KINDS);
	tcase_add_test(tc, test_other_processor);
	suite_add_tcase(s, tc);
	return s;
}
