/* Tests with data that the test compresses with the same libraries and then damages. */
#include "lib/unwind/elf/unpack.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define SIZE   100000
#define PACKED (SIZE + 4096)

static uint8_t plain[SIZE];
static uint8_t packed[PACKED];
static size_t packed_size;

static void set_up(void)
{
	for (size_t i = 0; i < SIZE; i++)
		plain[i] = (uint8_t)(i * i >> 9);
}

static void pack_xz(const uint8_t *bytes, size_t n)
{
	packed_size = 0;
	ck_assert_int_eq(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, bytes, n, packed,
						 &packed_size, sizeof(packed)),
			 LZMA_OK);
}

FIXTURE(set_up, NULL)

TEST(xz_data_is_unpacked_up_to_a_limit)
{
	uint8_t *out;
	size_t size;

	pack_xz(plain, SIZE);
	OK(unpack_xz(packed, packed_size, SIZE, &out, &size));
	ck_assert_uint_eq(size, SIZE);
	ck_assert_int_eq(memcmp(out, plain, SIZE), 0);
	free(out);
	/* One byte more than the limit. */
	ck_assert_int_eq(unpack_xz(packed, packed_size, SIZE - 1, &out, &size), -E2BIG);
	for (size_t n = 0; n < packed_size; n += packed_size / 50)
		ck_assert_int_eq(unpack_xz(packed, n, SIZE, &out, &size), -ENODATA);
}

/* A megabyte of zeros in a few hundred bytes. */
TEST(the_limit_holds_for_highly_compressed_data)
{
	static uint8_t nothing[1u << 20];
	uint8_t *out;
	size_t size;

	pack_xz(nothing, sizeof(nothing));
	ck_assert_uint_lt(packed_size, 1000);
	ck_assert_int_eq(unpack_xz(packed, packed_size, 65536, &out, &size), -E2BIG);
	OK(unpack_xz(packed, packed_size, sizeof(nothing), &out, &size));
	ck_assert_uint_eq(size, sizeof(nothing));
	free(out);
}

TEST(damaged_xz_data_is_refused)
{
	uint64_t random = 1;

	pack_xz(plain, SIZE);
	for (size_t i = 0; i < 100; i++) {
		size_t at = random_next(&random) % packed_size;
		uint8_t *out;
		size_t size;

		packed[at] ^= (uint8_t)(1 + random_next(&random) % 255);
		/* xz has checksums: damage is always found. */
		ck_assert_int_ne(unpack_xz(packed, packed_size, SIZE, &out, &size), 0);
		if (i % 10 == 9)
			pack_xz(plain, SIZE);
	}
}

TEST(zstd_data_is_unpacked_to_exactly_its_size)
{
	uint8_t *out;

	packed_size = ZSTD_compress(packed, sizeof(packed), plain, SIZE, 3);
	ck_assert(!ZSTD_isError(packed_size));
	OK(unpack_zstd(packed, packed_size, SIZE, &out));
	ck_assert_int_eq(memcmp(out, plain, SIZE), 0);
	free(out);
	/* The size in the header differs from that of the output. */
	ck_assert_int_eq(unpack_zstd(packed, packed_size, SIZE - 1, &out), -ENODATA);
	ck_assert_int_eq(unpack_zstd(packed, packed_size, SIZE + 1, &out), -ENODATA);
	for (size_t n = 0; n < packed_size; n += packed_size / 50)
		ck_assert_int_eq(unpack_zstd(packed, n, SIZE, &out), -ENODATA);
}
