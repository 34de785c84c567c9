#include "lib/ship/package.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "tests/unit/suite.h"

/* More than is copied at a time. */
#define PAYLOAD_BYTES 200001

#define EVENT_ID "{\"event_id\":\"0102030405060708090a0b0c0d0e0f10\","
#define SENT_AT	 "\"sent_at\":\"2026-01-02T03:04:05.000678Z\","
#define SDK	 "\"sdk\":{\"name\":\"name\",\"version\":\"1.2.3\"}}\n"
#define ITEM                                                 \
	"{\"type\":\"profile_chunk\",\"platform\":\"rust\"," \
	"\"length\":200001,\"content_type\":\"application/json\"}\n"

static struct package package;
static char *payload;

static void setup(void)
{
	package = (struct package){
		.event_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
			     16},
		.sdk_name = "name",
		.sdk_version = "1.2.3",
		.platform = "rust",
		.payload_fd = memfd_create("payload", MFD_CLOEXEC),
		.payload_size = PAYLOAD_BYTES,
	};
	payload = malloc(PAYLOAD_BYTES);
	ck_assert_ptr_nonnull(payload);
	for (size_t i = 0; i < PAYLOAD_BYTES; i++)
		payload[i] = (char)('a' + i % 17);
	ck_assert_int_eq(write(package.payload_fd, payload, PAYLOAD_BYTES),
			 PAYLOAD_BYTES);
}

static void teardown(void)
{
	close_fd(&package.payload_fd);
	free(payload);
}

static void assert_envelope(const char *bytes, size_t size, const char *head)
{
	ck_assert_uint_eq(size, strlen(head) + PAYLOAD_BYTES + 1);
	ck_assert_mem_eq(bytes, head, strlen(head));
	ck_assert(memcmp(bytes + strlen(head), payload, PAYLOAD_BYTES) == 0);
	ck_assert_int_eq(bytes[size - 1], '\n');
}

START_TEST(writes_a_file)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct buf b;

	buf_init(&b, 2 * PAYLOAD_BYTES);
	ck_assert_int_eq(package_write(&package, fd), 0);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	ck_assert_int_eq(buf_read_fd(&b, fd), 0);
	/* It is not known when it will be sent. */
	assert_envelope(b.data, b.len, EVENT_ID SDK ITEM);
	buf_fini(&b);
	close_fd(&fd);
}
END_TEST

START_TEST(compresses)
{
	char out[2 * PAYLOAD_BYTES];
	struct buf b;
	z_stream z = {.next_out = (uint8_t *)out, .avail_out = sizeof(out)};

	buf_init(&b, PAYLOAD_BYTES);
	ck_assert_int_eq(package_compress(&package, 1767323045000678, &b), 0);
	z.next_in = (uint8_t *)b.data;
	z.avail_in = (unsigned int)b.len;
	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_envelope(out, z.total_out, EVENT_ID SENT_AT SDK ITEM);
	(void)inflateEnd(&z);
	buf_fini(&b);
}
END_TEST

START_TEST(says_why_it_cannot)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct buf small;

	buf_init(&small, 100);
	ck_assert_int_eq(package_compress(&package, 1, &small), -E2BIG);
	buf_fini(&small);
	ck_assert_int_eq(package_write(&package, full), -ENOSPC);
	ck_assert_int_eq(package_write(&package, -1), -EBADF);
	package.payload_size++;
	buf_init(&small, PAYLOAD_BYTES);
	ck_assert_int_eq(package_compress(&package, 1, &small), -EIO);
	buf_fini(&small);
	package.platform = "\377";
	ck_assert_int_eq(package_write(&package, full), -EINVAL);
	close_fd(&full);
}
END_TEST

/* A payload that is shorter than was said is found out before the end. */
START_TEST(does_not_make_up_bytes)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	package.payload_size++;
	ck_assert_int_eq(package_write(&package, fd), -EIO);
	close_fd(&fd);
}
END_TEST

Suite *suite(void)
{
	Suite *s = suite_create("package");
	TCase *c = tcase_create("package");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, writes_a_file);
	tcase_add_test(c, compresses);
	tcase_add_test(c, says_why_it_cannot);
	tcase_add_test(c, does_not_make_up_bytes);
	suite_add_tcase(s, c);
	return s;
}
