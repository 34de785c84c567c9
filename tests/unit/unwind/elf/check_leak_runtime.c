/*
 * Programs that gcc and clang have built, with and without sanitizers: tests/targets/leaks_*.c.
 * Some are stripped.
 */
#include "lib/unwind/elf/leak_runtime.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

static const struct {
	const char *name;
	enum leak_runtime runtime;
} programs[] = {
	{"leaks_none", LEAK_RUNTIME_NONE},
	{"leaks_tsan", LEAK_RUNTIME_NONE},
	{"leaks_ubsan", LEAK_RUNTIME_NONE},
	{"leaks_asan", LEAK_RUNTIME_ASAN},
	{"leaks_asan_static", LEAK_RUNTIME_ASAN},
	{"leaks_asan_clang", LEAK_RUNTIME_ASAN},
	{"leaks_asan_clang_shared", LEAK_RUNTIME_ASAN},
	{"leaks_lsan", LEAK_RUNTIME_LSAN},
	{"leaks_lsan_static", LEAK_RUNTIME_LSAN},
	{"leaks_lsan_clang", LEAK_RUNTIME_LSAN},
};

/* This program is build/tests/unwind/elf/check_leak_runtime. */
static int open_program(const char *name)
{
	char path[PATH_MAX + 64] = "";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	int fd;

	ck_assert_int_gt(n, 0);
	for (int i = 0; i < 4; i++)
		*strrchr(path, '/') = '\0';
	(void)snprintf(path + strlen(path), 64, "/targets/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(fd >= 0, "%s", path);
	return fd;
}

static enum leak_runtime find(int fd)
{
	enum leak_runtime found;
	struct elf_file f;

	OK(elf_file_open(&f, fd));
	found = leak_runtime_find(&f);
	elf_file_close(&f);
	return found;
}

TESTS(the_runtime_of_a_program_is_found, array_size(programs))
{
	int fd = open_program(programs[_i].name);

	ck_assert_msg(find(fd) == programs[_i].runtime, "%s", programs[_i].name);
	close_fd(&fd);
}

/* Replaces each place of text in the bytes of the file, and returns the file. */
static int with_other_text(const char *name, const char *text, const char *other)
{
	int fd = open_program(name);
	const size_t size = (size_t)lseek(fd, 0, SEEK_END), n = strlen(text);
	uint8_t *bytes = malloc(size), *at = bytes;

	ck_assert_ptr_nonnull(bytes);
	OK(elf_file_pread(fd, bytes, size, 0));
	close_fd(&fd);
	while ((at = memmem(at, size - (size_t)(at - bytes), text, n)) != NULL)
		memcpy(at, other, n);
	fd = fuzz_file(bytes, size);
	free(bytes);
	return fd;
}

/* Of what gcc's shared runtime shows, each is sufficient. */
TEST(a_needed_library_is_sufficient)
{
	int fd = with_other_text("leaks_asan", "__asan_init", "__asan_Init");

	ck_assert(find(fd) == LEAK_RUNTIME_ASAN);
	close_fd(&fd);
}

TEST(a_symbol_is_sufficient)
{
	int fd = with_other_text("leaks_asan", "libasan.so", "libAsan.so");

	ck_assert(find(fd) == LEAK_RUNTIME_ASAN);
	close_fd(&fd);
}

TEST(the_message_counts_as_a_whole)
{
	int fd = with_other_text("leaks_asan_static", "encountered a fatal", "encountered A fatal");

	ck_assert(find(fd) == LEAK_RUNTIME_NONE);
	close_fd(&fd);
}
