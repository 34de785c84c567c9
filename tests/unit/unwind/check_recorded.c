/*
 * Walks of samples that are stored in tests/golden/stacks, with the program that they are of
 * (record.py there made them). No process is traced, so this tests the unwinder alone, on any
 * machine.
 */
#include "lib/unwind/unwind.h"

#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/unwind/cpu.h"
#include "tests/unit/golden.h"
#include "tests/unit/suite.h"

#define DIRECTORY "tests/golden/stacks/" CPU_NAME
#define KINDS_MIN 12

#define FILE_MAX (1u << 20)

static glob_t samples;
static struct unwind_cache *cache;
static struct unwind_space *space;
static struct unwind_stack out;

static int open_image(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	(void)ctx;
	(void)end;
	/* The program is the only file; the other mappings are the kernel's. */
	if (start != 0x400000)
		return -ENOENT;
	*ret_fd = open(DIRECTORY "/tiny", O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

static const struct unwind_files files = {
	.image = open_image,
};

/* The caller frees it. */
static char *read_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf b;

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	buf_init(&b, FILE_MAX);
	OK(buf_read_fd(&b, fd));
	close_fd(&fd);
	*ret_size = b.len;
	return b.data;
}

/* Reads a sample as the ring would have it. The caller frees it. */
static struct record_sample *read_sample(size_t i, size_t *ret_size)
{
	return (void *)read_file(samples.gl_pathv[i], ret_size);
}

static void set_up(void)
{
	const struct unwind_cache_options options = {.max_bytes = 1u << 20};
	size_t size;
	char *maps = read_file(DIRECTORY "/maps", &size);

	OK(unwind_cache_new(&options, &cache));
	OK(unwind_space_new(cache, &files, NULL, &space));
	OK(unwind_space_set_maps(space, maps, size));
	free(maps);
	OK(glob(DIRECTORY "/*.sample", 0, NULL, &samples));
	ck_assert_uint_ge(samples.gl_pathc, KINDS_MIN);
}

static void tear_down(void)
{
	globfree(&samples);
	unwind_space_free(space);
	unwind_cache_free(cache);
}

/* Writes the last walk in the format of the golden files. */
static void describe(struct buf *b)
{
	for (size_t i = 0; i < out.n; i++) {
		const struct unwind_frame *f = &out.frames[i];
		const char *name = "?";
		uint64_t offset = 0;

		if (unwind_symbol_at(space, f->addr - !f->is_leaf, &name, &offset))
			name = "?";
		OK(buf_printf(b, "%#" PRIx64 " %s+0x%" PRIx64 "%s\n", f->addr, name, offset,
			      f->by_heuristic ? " guessed" : ""));
	}
	OK(buf_printf(b, "%s\n", unwind_end_name(out.end)));
}

/* The frames of FILE.sample must be those in FILE.frames. */
static void check_frames(size_t i)
{
	const char *path = samples.gl_pathv[i];
	char expected[128];
	struct buf b;

	buf_init(&b, FILE_MAX);
	describe(&b);
	(void)snprintf(expected, sizeof(expected), "%.*s.frames", (int)(strrchr(path, '.') - path),
		       path);
	golden_check(buf_string(&b), expected);
	buf_fini(&b);
}

FIXTURE(set_up, tear_down)

/* Twice: the second walk uses the memo of the first. */
TEST(recorded_samples_have_their_golden_frames)
{
	for (size_t i = 0; i < samples.gl_pathc; i++) {
		size_t size;
		struct record_sample *s = read_sample(i, &size);

		s->h.tid = (uint32_t)i + 1;
		for (int k = 0; k < 2; k++) {
			OK(unwind_walk(space, s, size, 64, &out));
			check_frames(i);
			/* A second walk of the same thread follows the memo. */
			if (k == 1 && out.end == UNWIND_END_ROOT)
				ck_assert_uint_ge(out.shared_n, 2);
		}
		free(s);
	}
}

/* Each walk begins with the memo of a walk of another stack. */
TEST(samples_of_different_stacks_under_one_tid_have_their_frames)
{
	for (size_t k = 0; k < 2 * samples.gl_pathc; k++) {
		const size_t i = k % samples.gl_pathc;
		size_t size;
		struct record_sample *s = read_sample(i, &size);

		s->h.tid = 1;
		OK(unwind_walk(space, s, size, 64, &out));
		check_frames(i);
		free(s);
	}
}

static void check_cut(struct record_sample *s, size_t size)
{
	static struct unwind_stack whole;
	size_t shorter = 0;

	OK(unwind_walk(space, s, size, 64, &out));
	whole = out;
	for (uint32_t n = 0; n < size - sizeof(*s); n += 8) {
		s->stack_size = n;
		OK(unwind_walk(space, s, sizeof(*s) + n, 64, &out));
		ck_assert_uint_le(out.n, whole.n);
		if (out.n == whole.n)
			break;
		ck_assert_int_ne(out.end, UNWIND_END_ROOT);
		for (size_t i = 0; i < out.n; i++)
			ck_assert_uint_eq(out.frames[i].addr, whole.frames[i].addr);
		shorter++;
	}
	ck_assert_uint_ge(shorter, whole.n - 1);
}

TEST(a_stack_cut_anywhere_has_the_same_frames_but_fewer)
{
	for (size_t i = 0; i < samples.gl_pathc; i++) {
		size_t size;
		struct record_sample *s = read_sample(i, &size);

		check_cut(s, size);
		free(s);
	}
}

TEST(a_sample_of_another_processor_is_refused)
{
	size_t size;
	struct record_sample *s = read_sample(0, &size);

	ck_assert_uint_eq(s->arch, CPU_SAMPLE_ARCH);
	s->arch = SAMPLE_ARCH_X86_64 + SAMPLE_ARCH_AARCH64 - CPU_SAMPLE_ARCH;
	ck_assert_int_eq(unwind_walk(space, s, size, 64, &out), -EINVAL);
	free(s);
}
