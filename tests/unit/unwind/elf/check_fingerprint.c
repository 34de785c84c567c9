/* Fingerprints of two libraries of the same shape, with and without their build-ids. */
#include "lib/unwind/elf/fingerprint.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/watch_part.h"
#include "tests/unit/suite.h"

static void read_library(const char *name, bool with_id, struct fingerprint *ret)
{
	struct build_id id;
	struct elf_file f;
	char path[4096];
	int fd;

	suite_target(name, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	OK(elf_file_open(&f, fd));
	build_id_read(&f, &id);
	ck_assert(id.is_real);
	id.is_real = with_id;
	fingerprint_read(&f, &id, ret);
	/* The libraries have their bytes in the file at the same offset as in memory. */
	for (size_t i = 0; i < ret->n; i++) {
		uint8_t bytes[WATCH_BYTES];

		ck_assert_uint_le(ret->parts[i].size, WATCH_BYTES);
		OK(elf_file_pread(fd, bytes, ret->parts[i].size, ret->parts[i].vaddr));
		ck_assert_uint_eq(ret->parts[i].hash, watch_part_hash(bytes, ret->parts[i].size));
	}
	if (with_id) {
		uint8_t bytes[BUILD_ID_MAX];

		OK(elf_file_pread(fd, bytes, id.size, ret->parts[0].vaddr));
		ck_assert_mem_eq(bytes, id.bytes, id.size);
	}
	elf_file_close(&f);
	close_fd(&fd);
}

static bool is_in(const struct fingerprint *f, uint64_t hash)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->parts[i].hash == hash)
			return true;
	return false;
}

TEST(the_fingerprint_is_the_build_id)
{
	struct fingerprint alpha, beta;

	read_library("swap_alpha", true, &alpha);
	read_library("swap_beta", true, &beta);
	ck_assert_uint_eq(alpha.n, 1);
	ck_assert_uint_eq(beta.n, 1);
	ck_assert_uint_eq(alpha.parts[0].vaddr, beta.parts[0].vaddr);
	ck_assert_uint_ne(alpha.parts[0].hash, beta.parts[0].hash);
}

TEST(without_a_build_id_names_and_code_tell_libraries_apart)
{
	struct fingerprint alpha, beta;
	size_t other = 0;

	read_library("swap_alpha", false, &alpha);
	read_library("swap_beta", false, &beta);
	ck_assert_uint_eq(alpha.n, 8);
	ck_assert_uint_eq(beta.n, 8);
	for (size_t i = 0; i < alpha.n; i++)
		other += !is_in(&beta, alpha.parts[i].hash);
	ck_assert_uint_ge(other, 2);
}
