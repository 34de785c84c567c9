#include "lib/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST_CAP 256

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){.max = max};
}

void buf_fini(struct buf *b)
{
	if (b == NULL)
		return;
	free(b->data);
	buf_init(b, b->max);
}

void buf_wipe(struct buf *b)
{
	if (b->data != NULL)
		explicit_bzero(b->data, b->len);
	buf_fini(b);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	if (b->data != NULL)
		b->data[0] = '\0';
}

/* Makes room for n bytes more and the NUL. */
static int grow(struct buf *b, size_t n)
{
	size_t need, cap;
	char *data;

	if (n > b->max || b->len > b->max - n)
		return -E2BIG;
	if (__builtin_add_overflow(b->len + n, (size_t)1, &need))
		return -E2BIG;
	if (need <= b->cap)
		return 0;
	cap = b->cap == 0 ? BUF_FIRST_CAP : b->cap;
	while (cap < need)
		if (__builtin_mul_overflow(cap, (size_t)2, &cap))
			return -ENOMEM;
	data = realloc(b->data, cap);
	if (data == NULL)
		return -ENOMEM;
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_reserve(struct buf *b)
{
	int r = grow(b, b->max - b->len);

	if (r < 0)
		return -ENOMEM;
	b->data[b->len] = '\0';
	return 0;
}

int buf_add(struct buf *b, const void *bytes, size_t n)
{
	int r = grow(b, n);

	if (r < 0)
		return r;
	if (n > 0)
		memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
	return 0;
}

int buf_add_string(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *format, ...)
{
	va_list args, again;
	int n, r;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	r = n < 0 ? -ENOMEM : grow(b, (size_t)n);
	if (r == 0) {
		(void)vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return r;
}

int buf_read_fd(struct buf *b, int fd)
{
	for (;;) {
		size_t room, ask;
		ssize_t n;
		char extra;

		if (b->len == b->max) {
			do
				n = read(fd, &extra, 1);
			while (n < 0 && errno == EINTR);
			return n < 0 ? -errno : n == 0 ? 0 : -E2BIG;
		}
		room = b->max - b->len;
		ask = min_size(room, max_u64(b->cap, 4096));
		if (grow(b, ask) < 0)
			return -ENOMEM;
		n = read(fd, b->data + b->len, ask);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			b->data[b->len] = '\0';
			return n < 0 ? -errno : 0;
		}
		b->len += (size_t)n;
		b->data[b->len] = '\0';
	}
}

const char *buf_string(const struct buf *b)
{
	return b->data == NULL ? "" : b->data;
}
