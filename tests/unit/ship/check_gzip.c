#include "lib/ship/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

/* Larger than every piece that is worked on at a time. */
#define PAYLOAD_BYTES (3 * 1000 * 1000 + 17)

static uint8_t *payload;
static int payload_fd;

static void setup(void)
{
	uint64_t state = 1;

	payload = malloc(PAYLOAD_BYTES);
	ck_assert_ptr_nonnull(payload);
	/* Half of it cannot be compressed. */
	for (size_t i = 0; i < PAYLOAD_BYTES; i++)
		payload[i] = i % 2 == 0 ? 'a' : (uint8_t)random_next(&state);
	payload_fd = memfd_create("payload", MFD_CLOEXEC);
	ck_assert_int_eq(write(payload_fd, payload, PAYLOAD_BYTES),
			 PAYLOAD_BYTES);
}

static void teardown(void)
{
	close_fd(&payload_fd);
	free(payload);
}

/* By zlib's other half, which has its own idea of the format. */
static uint8_t *gunzip(const struct buf *b, size_t *ret_size)
{
	z_stream z = {.next_in = (uint8_t *)b->data,
		      .avail_in = (unsigned int)b->len};
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

START_TEST(keeps_every_byte)
{
	struct gzip g;
	struct buf b;
	uint8_t *out;
	size_t size;

	buf_init(&b, 2 * PAYLOAD_BYTES);
	ck_assert_int_eq(gzip_init(&g, &b), 0);
	ck_assert_int_eq(gzip_add(&g, "head\n", 5), 0);
	/* Reading is by pread: where the file stands does not matter. */
	ck_assert_int_eq(gzip_add_fd(&g, payload_fd, 0, PAYLOAD_BYTES), 0);
	ck_assert_int_eq(gzip_add(&g, "", 0), 0);
	ck_assert_int_eq(gzip_add(&g, "\n", 1), 0);
	ck_assert_int_eq(gzip_finish(&g), 0);
	gzip_fini(&g);
	ck_assert_uint_lt(b.len, PAYLOAD_BYTES * 9 / 10);

	out = gunzip(&b, &size);
	ck_assert_uint_eq(size, PAYLOAD_BYTES + 6);
	ck_assert_mem_eq(out, "head\n", 5);
	ck_assert(memcmp(out + 5, payload, PAYLOAD_BYTES) == 0);
	ck_assert_mem_eq(out + 5 + PAYLOAD_BYTES, "\n", 1);
	free(out);
	buf_fini(&b);
}
END_TEST

/* All at once, and nothing that can be compressed: output in many pieces. */
START_TEST(takes_much_at_a_time)
{
	uint64_t state = 2;
	struct gzip g;
	struct buf b;
	uint8_t *out;
	size_t size;

	for (size_t i = 0; i < PAYLOAD_BYTES; i++)
		payload[i] = (uint8_t)random_next(&state);
	buf_init(&b, 2 * PAYLOAD_BYTES);
	ck_assert_int_eq(gzip_init(&g, &b), 0);
	ck_assert_int_eq(gzip_add(&g, payload, PAYLOAD_BYTES), 0);
	ck_assert_int_eq(gzip_finish(&g), 0);
	gzip_fini(&g);
	out = gunzip(&b, &size);
	ck_assert_uint_eq(size, PAYLOAD_BYTES);
	ck_assert(memcmp(out, payload, PAYLOAD_BYTES) == 0);
	free(out);
	buf_fini(&b);
}
END_TEST

START_TEST(compresses_nothing)
{
	struct gzip g;
	struct buf b;
	uint8_t *out;
	size_t size;

	buf_init(&b, 1000);
	ck_assert_int_eq(gzip_init(&g, &b), 0);
	ck_assert_int_eq(gzip_finish(&g), 0);
	gzip_fini(&g);
	out = gunzip(&b, &size);
	ck_assert_uint_eq(size, 0);
	free(out);
	buf_fini(&b);
}
END_TEST

START_TEST(fails_on_a_short_file)
{
	struct gzip g;
	struct buf b;

	buf_init(&b, 2 * PAYLOAD_BYTES);
	ck_assert_int_eq(gzip_init(&g, &b), 0);
	ck_assert_int_eq(gzip_add_fd(&g, payload_fd, 0, PAYLOAD_BYTES + 1), -EIO);
	ck_assert_int_eq(gzip_add_fd(&g, -1, 0, 1), -EBADF);
	gzip_fini(&g);
	buf_fini(&b);
}
END_TEST

START_TEST(stops_at_the_maximum)
{
	struct gzip g;
	struct buf b;

	buf_init(&b, PAYLOAD_BYTES / 10);
	ck_assert_int_eq(gzip_init(&g, &b), 0);
	ck_assert_int_eq(gzip_add_fd(&g, payload_fd, 0, PAYLOAD_BYTES), -E2BIG);
	ck_assert_uint_le(b.len, PAYLOAD_BYTES / 10);
	gzip_fini(&g);
	buf_fini(&b);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("gzip");
	TCase *c = tcase_create("gzip");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, keeps_every_byte);
	tcase_add_test(c, takes_much_at_a_time);
	tcase_add_test(c, compresses_nothing);
	tcase_add_test(c, fails_on_a_short_file);
	tcase_add_test(c, stops_at_the_maximum);
	suite_add_tcase(s, c);
	return s;
}
