/*
 * elf_file keeps its size limits when the header of a compressed ELF section claims any size. The
 * tests compress the contents of the sections and write the header of each form.
 */
#include "lib/unwind/elf/elf_file.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/suite.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define SIZE 3000
#define MAX  (128u << 20)

static uint8_t plain[SIZE];
static uint8_t bytes[2 * SIZE];
static size_t size;

static void set_up(void)
{
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i * i >> 3);
}

static void put(const void *from, size_t n)
{
	memcpy(bytes + size, from, n);
	size += n;
}

/* Appends plain in the form of zlib, as one block that is stored (RFC 1950, RFC 1951). */
static void put_zlib(void)
{
	const uint16_t length = SIZE, inverse = (uint16_t)~length;
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < SIZE; i++) {
		a = (a + plain[i]) % 65521;
		b = (b + a) % 65521;
	}
	put((uint8_t[]){0x78, 0x01, 1}, 3);
	put(&length, 2);
	put(&inverse, 2);
	put(plain, SIZE);
	put((uint8_t[]){(uint8_t)(b >> 8), (uint8_t)b, (uint8_t)(a >> 8), (uint8_t)a}, 4);
}

enum form { ZLIB, ZSTD, GNU, FORMS };

/* Writes plain in this form to bytes, with a header that claims the size. */
static void make(enum form form, uint64_t claim)
{
	const Elf64_Chdr header = {
		.ch_type = form == ZLIB ? ELFCOMPRESS_ZLIB : ELFCOMPRESS_ZSTD,
		.ch_size = claim,
		.ch_addralign = 1,
	};

	size = 0;
	if (form == GNU) {
		put("ZLIB", 4);
		for (int shift = 56; shift >= 0; shift -= 8)
			put(&(uint8_t){(uint8_t)(claim >> shift)}, 1);
	} else {
		put(&header, sizeof(header));
	}
	if (form == ZSTD)
		size += ZSTD_compress(bytes + size, sizeof(bytes) - size, plain, SIZE, 3);
	else
		put_zlib();
}

/*
 * Reads bytes as a section in this form. beyond: the section's header says that it ends so many
 * bytes behind the file.
 */
static int read_beyond(enum form form, size_t beyond, size_t max, uint8_t **ret, size_t *ret_size)
{
	const struct fuzz_section section = {
		.name = form == GNU ? ".zdebug_info" : ".debug_info",
		.type = SHT_PROGBITS,
		.flags = form == GNU ? 0 : SHF_COMPRESSED,
		.bytes = bytes,
		.size = size,
	};
	int fd = fuzz_elf(&section, 1), r;
	struct elf_file f;
	GElf_Shdr shdr;
	Elf_Scn *scn;

	OK(elf_file_open(&f, fd));
	scn = elf_file_section(&f, ".debug_info", &shdr);
	ck_assert_ptr_nonnull(scn);
	if (beyond > 0)
		shdr.sh_size = f.size - shdr.sh_offset + beyond;
	r = elf_file_contents(&f, scn, &shdr, max, ret, ret_size);
	elf_file_close(&f);
	close_fd(&fd);
	return r;
}

static int read_contents(enum form form, size_t max, uint8_t **ret, size_t *ret_size)
{
	return read_beyond(form, 0, max, ret, ret_size);
}

FIXTURE(set_up, NULL)

TESTS(a_section_is_decompressed_up_to_a_limit, FORMS)
{
	const enum form form = (enum form)_i;
	uint8_t *out;
	size_t n, max;

	make(form, SIZE);
	max = size > SIZE ? size : SIZE;
	OK(read_contents(form, max, &out, &n));
	ck_assert_uint_eq(n, SIZE);
	ck_assert_mem_eq(out, plain, SIZE);
	free(out);
	/* Neither more contents than the limit, nor more compressed bytes. */
	ck_assert_int_eq(read_contents(form, max - 1, &out, &n), -E2BIG);
	ck_assert_int_eq(read_beyond(form, 1, MAX, &out, &n), -ENODATA);
}

/* Nothing is allocated for a size that only the header claims. */
TESTS(a_section_that_claims_too_much_is_refused, FORMS)
{
	static const uint64_t claims[] = {MAX + 1, UINT64_C(10) << 40, UINT64_MAX};
	const enum form form = (enum form)_i;
	uint8_t *out;
	size_t n;

	for (size_t i = 0; i < array_size(claims); i++) {
		make(form, claims[i]);
		ck_assert_int_eq(read_contents(form, MAX, &out, &n), -E2BIG);
	}
	/* Within the limit, but not the size of the contents. */
	make(form, SIZE + 1);
	ck_assert_int_eq(read_contents(form, MAX, &out, &n), -ENODATA);
	make(form, SIZE - 1);
	ck_assert_int_eq(read_contents(form, MAX, &out, &n), -ENODATA);
}

TEST(bytes_of_a_file_are_read_up_to_a_limit)
{
	const struct fuzz_section section = {
		.name = ".data", .type = SHT_PROGBITS, .bytes = plain, .size = SIZE};
	int fd = fuzz_elf(&section, 1);
	struct elf_file f;
	uint8_t *out;

	OK(elf_file_open(&f, fd));
	OK(elf_file_read(&f, FUZZ_SECTIONS_AT, SIZE, SIZE, &out));
	ck_assert_mem_eq(out, plain, SIZE);
	free(out);
	ck_assert_int_eq(elf_file_read(&f, FUZZ_SECTIONS_AT, SIZE, SIZE - 1, &out), -E2BIG);
	ck_assert_int_eq(elf_file_read(&f, FUZZ_SECTIONS_AT, 0, SIZE, &out), -ENODATA);
	ck_assert_int_eq(elf_file_read(&f, 0, f.size + 1, MAX, &out), -ENODATA);
	ck_assert_int_eq(elf_file_read(&f, f.size, 1, MAX, &out), -ENODATA);
	ck_assert_int_eq(elf_file_read(&f, UINT64_MAX, 1, MAX, &out), -ENODATA);
	/* Nothing is allocated for bytes that the file does not have. */
	ck_assert_int_eq(elf_file_read(&f, 0, UINT64_MAX, SIZE_MAX, &out), -ENODATA);
	ck_assert_int_eq(elf_file_read(&f, UINT64_MAX, UINT64_MAX, SIZE_MAX, &out), -ENODATA);
	elf_file_close(&f);
	close_fd(&fd);
}
