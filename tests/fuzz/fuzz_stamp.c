/*
 * An envelope that was kept in the spool: as the file is, and as what its file
 * unpacks to, so that mutations get past the checksum.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "lib/ship/gzip.h"
#include "lib/ship/package.h"

#define BYTES_MAX  (1u << 20)
#define SENT_AT_US (INT64_C(1800000000) * 1000000)
#define SENT_AT	   "\"sent_at\":\"2027-01-15T08:00:00"

static void unpack(const struct buf *packed, struct buf *ret)
{
	int fd = fuzz_file((const uint8_t *)packed->data, packed->len);
	uint8_t piece[4096];
	struct gunzip g;
	size_t n;

	assert(gunzip_init(&g, fd) == 0);
	do {
		assert(gunzip_next(&g, piece, sizeof(piece), &n) == 0);
		assert(buf_add(ret, piece, n) == 0);
	} while (n > 0);
	gunzip_fini(&g);
	(void)close(fd);
}

/* One line with the time, and then what there was. plain: NULL, not known. */
static void check_stamped(const struct buf *stamped, const uint8_t *plain, size_t size)
{
	const char *line_end;
	const uint8_t *rest;
	size_t line;
	struct buf b;

	buf_init(&b, 2 * BYTES_MAX);
	unpack(stamped, &b);
	line_end = memchr(b.data, '\n', b.len);
	assert(line_end != NULL);
	line = (size_t)(line_end - b.data) + 1;
	assert(line < ENVELOPE_HEADER_SIZE);
	assert(memmem(b.data, line, SENT_AT, strlen(SENT_AT)) != NULL);
	if (plain != NULL) {
		rest = memchr(plain, '\n', size);
		assert(rest != NULL);
		rest++;
		assert(b.len - line == size - (size_t)(rest - plain));
		assert(memcmp(b.data + line, rest, b.len - line) == 0);
	}
	buf_fini(&b);
}

static void stamp(const uint8_t *file, size_t size, const uint8_t *plain, size_t plain_size)
{
	int fd = fuzz_file(file, size);
	struct buf b;
	int r;

	buf_init(&b, BYTES_MAX);
	r = package_stamp(fd, COMPRESSION_GZIP, SENT_AT_US, NULL, &b);
	assert(r == 0 || r == -EBADMSG || r == -E2BIG || r == -ENOMEM);
	if (r == 0)
		check_stamped(&b, plain, plain_size);
	buf_fini(&b);
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gzip g;
	struct buf packed;

	if (size > BYTES_MAX)
		return 0;
	stamp(data, size, NULL, 0);
	buf_init(&packed, 2 * BYTES_MAX);
	assert(gzip_init(&g, &packed) == 0);
	assert(gzip_add(&g, data, size) == 0 && gzip_finish(&g) == 0);
	gzip_fini(&g);
	stamp((const uint8_t *)packed.data, packed.len, data, size);
	buf_fini(&packed);
	return 0;
}
