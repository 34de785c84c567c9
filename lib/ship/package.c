#include "lib/ship/package.h"

#include <string.h>

#include "lib/ship/compressor.h"

#define COPY_BYTES (64 * 1024)

/* A header line of the envelope or of an item. */
struct head {
	char text[ENVELOPE_HEADER_SIZE];
	size_t len;
};

/* The destination of the bytes: a file, or a compressor. */
struct sink {
	int (*put)(void *ctx, const void *bytes, size_t size);
	void *ctx;
};

static int put_header(const struct package *p, int64_t sent_at_us, const struct sink *to)
{
	struct envelope_fields envelope = {
		.sent_at_us = sent_at_us,
		.sdk_name = p->sdk_name,
		.sdk_version = p->sdk_version,
	};
	struct head head;
	int r;

	memcpy(envelope.event_id, p->event_id, sizeof(envelope.event_id));
	r = envelope_header(&envelope, head.text, sizeof(head.text), &head.len);
	return r < 0 ? r : to->put(to->ctx, head.text, head.len);
}

static int put_range(int fd, uint64_t at, uint64_t size, const struct sink *to)
{
	const uint64_t end = at + size;
	uint8_t bytes[COPY_BYTES];

	while (at < end) {
		size_t want = (size_t)min_u64(end - at, sizeof(bytes));
		ssize_t n = pread(fd, bytes, want, (off_t)at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = to->put(to->ctx, bytes, (size_t)n);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

/* Writes an item: its header and item.length bytes of fd, from offset at on. */
static int put_item(int fd, struct envelope_item item, uint64_t at, const struct sink *to)
{
	struct head head;
	int r;

	item.content_type = "application/json";
	r = envelope_item_header(&item, head.text, sizeof(head.text), &head.len);
	if (r == 0)
		r = to->put(to->ctx, head.text, head.len);
	if (r == 0)
		r = put_range(fd, at, item.length, to);
	if (r == 0)
		r = to->put(to->ctx, ENVELOPE_LINE_END, strlen(ENVELOPE_LINE_END));
	return r;
}

static int put_items(const struct package *p, const struct sink *to)
{
	const struct envelope_item transaction = {
		.type = "transaction",
		.length = p->transaction_size + p->anchor_size,
	};
	const struct envelope_item profile = {
		.type = p->transaction_size > 0 ? "profile" : "profile_chunk",
		.platform = p->platform,
		.length = p->payload_size - p->transaction_size,
	};
	int r = 0;

	if (p->payload_fd < 0)
		return 0;
	if (transaction.length > 0)
		r = put_item(p->anchor_size > 0 ? p->anchor_fd : p->payload_fd, transaction, 0, to);
	return r < 0 ? r : put_item(p->payload_fd, profile, p->transaction_size, to);
}

static int put(const struct package *p, int64_t sent_at_us, const struct sink *to)
{
	int r = put_header(p, sent_at_us, to);

	return r < 0 ? r : put_items(p, to);
}

static int write_bytes(void *ctx, const void *bytes, size_t size)
{
	return write_all(*(const int *)ctx, bytes, size);
}

int package_write(const struct package *p, int fd)
{
	const struct sink to = {write_bytes, &fd};

	return put(p, ENVELOPE_NOT_SENT, &to);
}

static int compress_bytes(void *ctx, const void *bytes, size_t size)
{
	return compressor_add(ctx, bytes, size);
}

static int finish(struct compressor *c, const struct reports_item *report)
{
	int r = report == NULL ? 0 : compressor_add(c, report->text, report->len);

	return r < 0 ? r : compressor_finish(c);
}

int package_compress(const struct package *p, int64_t sent_at_us, const struct reports_item *report,
		     struct buf *ret)
{
	struct compressor c;
	const struct sink to = {compress_bytes, &c};
	int r;

	r = compressor_init(&c, p->compression, ret);
	if (r < 0)
		return r;
	r = put(p, sent_at_us, &to);
	if (r == 0)
		r = finish(&c, report);
	compressor_fini(&c);
	return r;
}

/*
 * Decompresses up to size bytes, at least the first line. *ret_line: length of that line with its
 * newline.
 */
static int read_line(struct gunzip *from, char *bytes, size_t size, size_t *ret_n, size_t *ret_line)
{
	const char *line_end;
	int r;

	r = gunzip_next(from, bytes, size, ret_n);
	if (r < 0)
		return r;
	line_end = memchr(bytes, ENVELOPE_LINE_END[0], min_size(*ret_n, ENVELOPE_HEADER_SIZE));
	if (line_end == NULL)
		return -EBADMSG;
	*ret_line = (size_t)(line_end - bytes) + strlen(ENVELOPE_LINE_END);
	return 0;
}

static int stamp(struct gunzip *from, int64_t sent_at_us, const struct reports_item *report,
		 struct compressor *to)
{
	char bytes[COPY_BYTES], head[ENVELOPE_HEADER_SIZE];
	size_t n, line, head_len, size;
	int r;

	r = read_line(from, bytes, sizeof(bytes), &n, &line);
	if (r == 0)
		r = envelope_stamp(bytes, line, sent_at_us, head, sizeof(head), &head_len);
	if (r == 0)
		r = compressor_add(to, head, head_len);
	if (r == 0)
		r = compressor_add(to, bytes + line, n - line);
	for (size = n; r == 0 && n > 0; size += n) {
		r = gunzip_next(from, bytes, sizeof(bytes), &n);
		if (r == 0 && n > PACKAGE_UNPACKED_MAX - size)
			r = -EFBIG;
		if (r == 0)
			r = compressor_add(to, bytes, n);
	}
	return r == 0 ? finish(to, report) : r;
}

int package_stamp(int fd, enum compression how, int64_t sent_at_us,
		  const struct reports_item *report, struct buf *ret)
{
	struct gunzip from;
	struct compressor to;
	int r;

	r = gunzip_init(&from, fd);
	if (r < 0)
		return r;
	r = compressor_init(&to, how, ret);
	if (r == 0) {
		r = stamp(&from, sent_at_us, report, &to);
		compressor_fini(&to);
	}
	gunzip_fini(&from);
	return r;
}
