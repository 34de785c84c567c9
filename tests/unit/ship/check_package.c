#include "lib/ship/package.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

#include "lib/ship/compressor.h"
#include "tests/unit/suite.h"

/* More than package.c copies at a time. */
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
		.event_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
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
	ck_assert_int_eq(write(package.payload_fd, payload, PAYLOAD_BYTES), PAYLOAD_BYTES);
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

FIXTURE(setup, teardown)

TEST(a_file_has_an_envelope_without_sent_at)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct buf b;

	buf_init(&b, 2 * PAYLOAD_BYTES);
	OK(package_write(&package, fd));
	OK(lseek(fd, 0, SEEK_SET));
	OK(buf_read_fd(&b, fd));
	/* No sent_at: the file may be sent at any time. */
	assert_envelope(b.data, b.len, EVENT_ID SDK ITEM);
	buf_fini(&b);
	close_fd(&fd);
}

#define TRANSACTION_ITEM                               \
	"{\"type\":\"transaction\",\"length\":100001," \
	"\"content_type\":\"application/json\"}\n"
#define PROFILE_ITEM                                                     \
	"{\"type\":\"profile\",\"platform\":\"rust\",\"length\":100000," \
	"\"content_type\":\"application/json\"}\n"

/* The two parts of the payload become two items. */
TEST(writes_a_transaction_and_its_profile)
{
	static const char head[] = EVENT_ID SDK TRANSACTION_ITEM;
	int fd = memfd_create("file", MFD_CLOEXEC);
	const char *at;
	struct buf b;

	package.transaction_size = 100001;
	buf_init(&b, 2 * PAYLOAD_BYTES);
	OK(package_write(&package, fd));
	OK(lseek(fd, 0, SEEK_SET));
	OK(buf_read_fd(&b, fd));
	ck_assert_uint_eq(b.len, strlen(head) + strlen(PROFILE_ITEM) + PAYLOAD_BYTES + 2);
	at = b.data;
	ck_assert_mem_eq(at, head, strlen(head));
	at += strlen(head);
	ck_assert(memcmp(at, payload, 100001) == 0 && at[100001] == '\n');
	at += 100002;
	ck_assert_mem_eq(at, PROFILE_ITEM, strlen(PROFILE_ITEM));
	at += strlen(PROFILE_ITEM);
	ck_assert(memcmp(at, payload + 100001, 100000) == 0);
	ck_assert_int_eq(at[100000], '\n');
	buf_fini(&b);
	close_fd(&fd);
}

/* Decompresses the text and appends a NUL. */
static char *unpack(const struct buf *b)
{
	char *out = calloc(2, PAYLOAD_BYTES);
	z_stream z = {
		.next_in = (uint8_t *)b->data,
		.avail_in = (unsigned int)b->len,
		.next_out = (uint8_t *)out,
		.avail_out = 2 * PAYLOAD_BYTES - 1,
	};

	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	(void)inflateEnd(&z);
	return out;
}

TEST(a_report_is_the_last_item)
{
	const struct reports_item item = {.text = "{}\n12\n", .len = 6};
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct buf b;
	char *text;

	buf_init(&b, PAYLOAD_BYTES);
	OK(package_compress(&package, 1767323045000678, &item, &b));
	text = unpack(&b);
	assert_envelope(text, strlen(text) - item.len, EVENT_ID SENT_AT SDK ITEM);
	ck_assert_str_eq(text + strlen(text) - item.len, item.text);
	free(text);
	/* The same for an envelope of the spool. */
	buf_clear(&b);
	OK(package_compress(&package, ENVELOPE_NOT_SENT, NULL, &b));
	ck_assert_int_eq(write(fd, b.data, b.len), (ssize_t)b.len);
	buf_clear(&b);
	OK(package_stamp(fd, COMPRESSION_GZIP, 1767323045000678, &item, &b));
	text = unpack(&b);
	assert_envelope(text, strlen(text) - item.len, EVENT_ID SENT_AT SDK ITEM);
	ck_assert_str_eq(text + strlen(text) - item.len, item.text);
	free(text);
	/* A report without a chunk. */
	close_fd(&package.payload_fd);
	buf_clear(&b);
	OK(package_compress(&package, 1767323045000678, &item, &b));
	text = unpack(&b);
	ck_assert_str_eq(text, EVENT_ID SENT_AT SDK "{}\n12\n");
	free(text);
	buf_fini(&b);
	close_fd(&fd);
}

TEST(a_compressed_envelope_has_every_byte)
{
	char out[2 * PAYLOAD_BYTES];
	struct buf b;
	z_stream z = {.next_out = (uint8_t *)out, .avail_out = sizeof(out)};

	buf_init(&b, PAYLOAD_BYTES);
	OK(package_compress(&package, 1767323045000678, NULL, &b));
	z.next_in = (uint8_t *)b.data;
	z.avail_in = (unsigned int)b.len;
	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_envelope(out, z.total_out, EVENT_ID SENT_AT SDK ITEM);
	(void)inflateEnd(&z);
	buf_fini(&b);
}

/* Makes a file of n bytes. */
static int file_of(const char *bytes, size_t n)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	return fd;
}

/* The transaction is in a file of its own. */
TEST(writes_an_anchor_and_its_chunk)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct buf b;

	package.anchor_size = 6;
	package.anchor_fd = file_of("anchor", 6);
	buf_init(&b, 2 * PAYLOAD_BYTES);
	OK(package_write(&package, fd));
	OK(lseek(fd, 0, SEEK_SET));
	OK(buf_read_fd(&b, fd));
	assert_envelope(b.data, b.len,
			EVENT_ID SDK "{\"type\":\"transaction\",\"length\":6,"
				     "\"content_type\":\"application/json\"}\n"
				     "anchor\n" ITEM);
	buf_fini(&b);
	close_fd(&package.anchor_fd);
	close_fd(&fd);
}

/* package_stamp() adds sent_at to a stored envelope and changes nothing else. */
TEST(stamps_a_stored_envelope)
{
	struct buf kept, sent, direct;
	int fd;

	buf_init(&kept, PAYLOAD_BYTES);
	buf_init(&sent, PAYLOAD_BYTES);
	buf_init(&direct, PAYLOAD_BYTES);
	OK(package_compress(&package, ENVELOPE_NOT_SENT, NULL, &kept));
	OK(package_compress(&package, 1767323045000678, NULL, &direct));
	fd = file_of(kept.data, kept.len);
	OK(package_stamp(fd, COMPRESSION_GZIP, 1767323045000678, NULL, &sent));
	ck_assert_uint_eq(sent.len, direct.len);
	ck_assert_int_eq(memcmp(sent.data, direct.data, sent.len), 0);
	close_fd(&fd);

	buf_clear(&sent);
	sent.max = 100;
	fd = file_of(kept.data, kept.len);
	ck_assert_int_eq(package_stamp(fd, COMPRESSION_GZIP, 1, NULL, &sent), -E2BIG);
	sent.max = PAYLOAD_BYTES;
	/* A file that is cut, extended or has a flipped bit is refused. */
	OK(ftruncate(fd, (off_t)kept.len - 1));
	ck_assert_int_eq(package_stamp(fd, COMPRESSION_GZIP, 1, NULL, &sent), -EBADMSG);
	OK(ftruncate(fd, (off_t)kept.len + 1));
	ck_assert_int_eq(package_stamp(fd, COMPRESSION_GZIP, 1, NULL, &sent), -EBADMSG);
	close_fd(&fd);
	for (size_t i = 0; i < kept.len; i += kept.len / 100) {
		/* Flags and time in the gzip header have no checksum. */
		if (i >= 3 && i < 10)
			continue;
		kept.data[i] ^= 16;
		fd = file_of(kept.data, kept.len);
		ck_assert_int_eq(package_stamp(fd, COMPRESSION_GZIP, 1, NULL, &sent), -EBADMSG);
		close_fd(&fd);
		kept.data[i] ^= 16;
	}
	buf_fini(&kept);
	buf_fini(&sent);
	buf_fini(&direct);
}

/* A valid gzip file that is no envelope: its first line is too long, or no header. */
TEST(only_envelopes_are_stamped)
{
	static char line[2 * ENVELOPE_HEADER_SIZE];
	static const char *const others[] = {"",      "\n", "{}\n",
					     "[1]\n", line, "{\"event_id\":\"1\",\"sdk\":{}}\n"};
	struct buf kept, sent;
	struct gzip g;
	int fd;

	memset(line, ' ', sizeof(line) - 1);
	for (size_t i = 0; i < array_size(others); i++) {
		buf_init(&kept, PAYLOAD_BYTES);
		buf_init(&sent, PAYLOAD_BYTES);
		OK(gzip_init(&g, &kept));
		OK(gzip_add(&g, others[i], strlen(others[i])));
		OK(gzip_finish(&g));
		gzip_fini(&g);
		fd = file_of(kept.data, kept.len);
		ck_assert_int_eq(package_stamp(fd, COMPRESSION_GZIP, 1, NULL, &sent), -EBADMSG);
		close_fd(&fd);
		buf_fini(&kept);
		buf_fini(&sent);
	}
	ck_assert_int_eq(package_stamp(-1, COMPRESSION_GZIP, 1, NULL, &sent), -EBADF);
}

/* Makes a stored envelope that decompresses to this many bytes. */
static int kept_of(size_t size)
{
	static const char head[] = EVENT_ID SDK;
	static const char zeros[64 * 1024];
	struct buf kept;
	struct gzip g;
	int fd;

	buf_init(&kept, 1u << 20);
	OK(gzip_init(&g, &kept));
	OK(gzip_add(&g, head, strlen(head)));
	for (size_t n = strlen(head); n < size;) {
		const size_t part = min_size(size - n, sizeof(zeros));

		OK(gzip_add(&g, zeros, part));
		n += part;
	}
	OK(gzip_finish(&g));
	gzip_fini(&g);
	fd = file_of(kept.data, kept.len);
	buf_fini(&kept);
	return fd;
}

/* A small file may decompress to any size. */
TEST(a_file_that_decompresses_to_too_much_is_refused)
{
	int fd = kept_of(PACKAGE_UNPACKED_MAX);
	struct buf sent;

	buf_init(&sent, 1u << 20);
	OK(package_stamp(fd, COMPRESSION_ZSTD, 1, NULL, &sent));
	close_fd(&fd);
	fd = kept_of(PACKAGE_UNPACKED_MAX + 1);
	buf_clear(&sent);
	ck_assert_int_eq(package_stamp(fd, COMPRESSION_ZSTD, 1, NULL, &sent), -EFBIG);
	close_fd(&fd);
	buf_fini(&sent);
}

/* Stored with gzip, sent with zstd. */
TEST(an_envelope_of_the_spool_can_be_sent_with_zstd)
{
	struct buf kept, sent;
	size_t size;
	char *out;
	int fd;

	buf_init(&kept, PAYLOAD_BYTES);
	buf_init(&sent, PAYLOAD_BYTES);
	OK(package_compress(&package, ENVELOPE_NOT_SENT, NULL, &kept));
	fd = file_of(kept.data, kept.len);
	OK(package_stamp(fd, COMPRESSION_ZSTD, 1767323045000678, NULL, &sent));
	out = malloc(2 * PAYLOAD_BYTES);
	ck_assert_ptr_nonnull(out);
	size = ZSTD_decompress(out, 2 * PAYLOAD_BYTES, sent.data, sent.len);
	ck_assert(!ZSTD_isError(size));
	assert_envelope(out, size, EVENT_ID SENT_AT SDK ITEM);
	/* The same for an envelope that is sent directly. */
	buf_clear(&kept);
	package.compression = COMPRESSION_ZSTD;
	OK(package_compress(&package, 1767323045000678, NULL, &kept));
	ck_assert_uint_eq(kept.len, sent.len);
	ck_assert(memcmp(kept.data, sent.data, sent.len) == 0);
	free(out);
	close_fd(&fd);
	buf_fini(&kept);
	buf_fini(&sent);
}

TEST(each_error_is_returned)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct buf small;

	buf_init(&small, 100);
	ck_assert_int_eq(package_compress(&package, 1, NULL, &small), -E2BIG);
	buf_fini(&small);
	ck_assert_int_eq(package_write(&package, full), -ENOSPC);
	ck_assert_int_eq(package_write(&package, -1), -EBADF);
	package.payload_size++;
	buf_init(&small, PAYLOAD_BYTES);
	ck_assert_int_eq(package_compress(&package, 1, NULL, &small), -EIO);
	buf_fini(&small);
	package.platform = "\377";
	buf_init(&small, PAYLOAD_BYTES);
	ck_assert_int_eq(package_compress(&package, 1, NULL, &small), -EINVAL);
	buf_fini(&small);
	close_fd(&full);
}

/* A payload that is shorter than payload_size is an error. */
TEST(a_payload_that_is_too_short_is_an_error)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	package.payload_size++;
	ck_assert_int_eq(package_write(&package, fd), -EIO);
	close_fd(&fd);
}
