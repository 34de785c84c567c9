#include "lib/ship/package.h"

#include <string.h>

#include "lib/ship/gzip.h"

#define COPY_BYTES (64 * 1024)

/* The header lines. */
struct head {
	char text[2 * ENVELOPE_HEADER_SIZE];
	size_t len;
};

static int make_head(const struct package *p, int64_t sent_at_us,
		     struct head *ret)
{
	struct envelope envelope = {
		.sent_at_us = sent_at_us,
		.sdk_name = p->sdk_name,
		.sdk_version = p->sdk_version,
	};
	struct envelope_item item = {
		.type = "profile_chunk",
		.platform = p->platform,
		.content_type = "application/json",
		.length = p->payload_size,
	};
	size_t first, second;
	int r;

	memcpy(envelope.event_id, p->event_id, sizeof(envelope.event_id));
	r = envelope_header(&envelope, ret->text, ENVELOPE_HEADER_SIZE, &first);
	second = 0;
	if (r == 0 && p->payload_fd >= 0)
		r = envelope_item_header(&item, ret->text + first,
					 ENVELOPE_HEADER_SIZE, &second);
	if (r == 0)
		ret->len = first + second;
	return r;
}

static int copy(int from, uint64_t size, int to)
{
	uint8_t bytes[COPY_BYTES];
	uint64_t at = 0;

	while (at < size) {
		size_t want = (size_t)min_u64(size - at, sizeof(bytes));
		ssize_t n = pread(from, bytes, want, (off_t)at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = write_all(to, bytes, (size_t)n);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

int package_write(const struct package *p, int fd)
{
	struct head head;
	int r;

	r = make_head(p, ENVELOPE_NOT_SENT, &head);
	if (r == 0)
		r = write_all(fd, head.text, head.len);
	if (r == 0)
		r = copy(p->payload_fd, p->payload_size, fd);
	if (r == 0)
		r = write_all(fd, ENVELOPE_LINE_END, strlen(ENVELOPE_LINE_END));
	return r;
}

static int add_chunk(const struct package *p, struct gzip *g)
{
	int r = gzip_add_fd(g, p->payload_fd, p->payload_size);

	return r < 0 ? r
		     : gzip_add(g, ENVELOPE_LINE_END,
				strlen(ENVELOPE_LINE_END));
}

static int finish(struct gzip *g, const struct reports_item *report)
{
	int r = report == NULL ? 0 : gzip_add(g, report->text, report->len);

	return r < 0 ? r : gzip_finish(g);
}

int package_compress(const struct package *p, int64_t sent_at_us,
		     const struct reports_item *report, struct buf *ret)
{
	struct head head;
	struct gzip g;
	int r;

	r = make_head(p, sent_at_us, &head);
	if (r < 0)
		return r;
	r = gzip_init(&g, ret);
	if (r < 0)
		return r;
	r = gzip_add(&g, head.text, head.len);
	if (r == 0 && p->payload_fd >= 0)
		r = add_chunk(p, &g);
	if (r == 0)
		r = finish(&g, report);
	gzip_fini(&g);
	return r;
}

/*
 * Reads at least the first line, and up to size bytes. *ret_line: of the line,
 * with its end.
 */
static int read_line(struct gunzip *from, char *bytes, size_t size,
		     size_t *ret_n, size_t *ret_line)
{
	const char *line_end;
	int r;

	r = gunzip_next(from, bytes, size, ret_n);
	if (r < 0)
		return r;
	line_end = memchr(bytes, ENVELOPE_LINE_END[0],
			  min_size(*ret_n, ENVELOPE_HEADER_SIZE));
	if (line_end == NULL)
		return -EBADMSG;
	*ret_line = (size_t)(line_end - bytes) + strlen(ENVELOPE_LINE_END);
	return 0;
}

static int stamp(struct gunzip *from, int64_t sent_at_us,
		 const struct reports_item *report, struct gzip *to)
{
	char bytes[COPY_BYTES], head[ENVELOPE_HEADER_SIZE];
	size_t n, line, head_len;
	int r;

	r = read_line(from, bytes, sizeof(bytes), &n, &line);
	if (r == 0)
		r = envelope_stamp(bytes, line, sent_at_us, head, sizeof(head),
				   &head_len);
	if (r == 0)
		r = gzip_add(to, head, head_len);
	if (r == 0)
		r = gzip_add(to, bytes + line, n - line);
	while (r == 0 && n > 0) {
		r = gunzip_next(from, bytes, sizeof(bytes), &n);
		if (r == 0)
			r = gzip_add(to, bytes, n);
	}
	return r == 0 ? finish(to, report) : r;
}

int package_stamp(int fd, int64_t sent_at_us, const struct reports_item *report,
		  struct buf *ret)
{
	struct gunzip from;
	struct gzip to;
	int r;

	r = gunzip_init(&from, fd);
	if (r < 0)
		return r;
	r = gzip_init(&to, ret);
	if (r == 0) {
		r = stamp(&from, sent_at_us, report, &to);
		gzip_fini(&to);
	}
	gunzip_fini(&from);
	return r;
}
