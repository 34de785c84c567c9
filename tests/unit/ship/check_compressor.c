#include "lib/ship/compressor.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

/* Larger than every buffer of the compressors. */
#define PAYLOAD_BYTES (3 * 1000 * 1000 + 17)

static uint8_t *payload;

static void setup(void)
{
	uint64_t state = 1;

	payload = malloc(PAYLOAD_BYTES);
	ck_assert_ptr_nonnull(payload);
	/* Half of it cannot be compressed. */
	for (size_t i = 0; i < PAYLOAD_BYTES; i++)
		payload[i] = i % 2 == 0 ? 'a' : (uint8_t)random_next(&state);
}

static void teardown(void)
{
	free(payload);
}

/* Decompresses with the functions of the libraries. */
static uint8_t *unpack_zstd(const struct buf *b, size_t *ret_size)
{
	uint8_t *out = malloc(2 * PAYLOAD_BYTES);

	ck_assert_ptr_nonnull(out);
	*ret_size = ZSTD_decompress(out, 2 * PAYLOAD_BYTES, b->data, b->len);
	ck_assert(!ZSTD_isError(*ret_size));
	return out;
}

static uint8_t *gunzip(const struct buf *b, size_t *ret_size)
{
	z_stream z = {.next_in = (uint8_t *)b->data, .avail_in = (unsigned int)b->len};
	uint8_t *out = malloc(2 * PAYLOAD_BYTES);

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_out = out;
	z.avail_out = 2 * PAYLOAD_BYTES;
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	ck_assert_uint_eq(z.avail_in, 0);
	*ret_size = z.total_out;
	(void)inflateEnd(&z);
	return out;
}

static uint8_t *unpack(int how, const struct buf *b, size_t *ret_size)
{
	return how == COMPRESSION_ZSTD ? unpack_zstd(b, ret_size) : gunzip(b, ret_size);
}

FIXTURE(setup, teardown)

TESTS(decompression_gives_every_byte, COMPRESSION_N)
{
	struct compressor c;
	struct buf b;
	uint8_t *out;
	size_t size;

	buf_init(&b, 2 * PAYLOAD_BYTES);
	OK(compressor_init(&c, (enum compression)_i, &b));
	OK(compressor_add(&c, "head\n", 5));
	for (size_t at = 0; at < PAYLOAD_BYTES; at += 65536)
		OK(compressor_add(&c, payload + at, min_size(65536, PAYLOAD_BYTES - at)));
	OK(compressor_add(&c, "", 0));
	OK(compressor_add(&c, "\n", 1));
	OK(compressor_finish(&c));
	compressor_fini(&c);
	ck_assert_uint_lt(b.len, PAYLOAD_BYTES * 9 / 10);

	out = unpack(_i, &b, &size);
	ck_assert_uint_eq(size, PAYLOAD_BYTES + 6);
	ck_assert_mem_eq(out, "head\n", 5);
	ck_assert(memcmp(out + 5, payload, PAYLOAD_BYTES) == 0);
	ck_assert_mem_eq(out + 5 + PAYLOAD_BYTES, "\n", 1);
	free(out);
	buf_fini(&b);
}

/* Incompressible input in one call: the output comes in many pieces. */
TESTS(large_input_can_be_added_in_one_call, COMPRESSION_N)
{
	uint64_t state = 2;
	struct compressor c;
	struct buf b;
	uint8_t *out;
	size_t size;

	for (size_t i = 0; i < PAYLOAD_BYTES; i++)
		payload[i] = (uint8_t)random_next(&state);
	buf_init(&b, 2 * PAYLOAD_BYTES);
	OK(compressor_init(&c, (enum compression)_i, &b));
	OK(compressor_add(&c, payload, PAYLOAD_BYTES));
	OK(compressor_finish(&c));
	compressor_fini(&c);
	out = unpack(_i, &b, &size);
	ck_assert_uint_eq(size, PAYLOAD_BYTES);
	ck_assert(memcmp(out, payload, PAYLOAD_BYTES) == 0);
	free(out);
	buf_fini(&b);
}

TESTS(empty_input_gives_a_valid_stream, COMPRESSION_N)
{
	struct compressor c;
	struct buf b;
	uint8_t *out;
	size_t size;

	buf_init(&b, 1000);
	OK(compressor_init(&c, (enum compression)_i, &b));
	OK(compressor_finish(&c));
	compressor_fini(&c);
	out = unpack(_i, &b, &size);
	ck_assert_uint_eq(size, 0);
	free(out);
	buf_fini(&b);
}

TESTS(compression_stops_at_the_maximum_of_the_buffer, COMPRESSION_N)
{
	struct compressor c;
	struct buf b;

	buf_init(&b, PAYLOAD_BYTES / 10);
	OK(compressor_init(&c, (enum compression)_i, &b));
	ck_assert_int_eq(compressor_add(&c, payload, PAYLOAD_BYTES), -E2BIG);
	ck_assert_uint_le(b.len, PAYLOAD_BYTES / 10);
	compressor_fini(&c);
	buf_fini(&b);
}
