#include "proto/json_out.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

/* The digits of UINT64_MAX. */
#define DECIMAL_MAX 20

void json_out_init(struct json_out *o, FILE *file)
{
	o->file = file;
	o->error = 0;
	o->used = 0;
}

static void fail(struct json_out *o, int error)
{
	if (o->error == 0)
		o->error = error;
}

static void flush(struct json_out *o)
{
	if (o->error == 0) {
		errno = 0;
		if (fwrite(o->buf, 1, o->used, o->file) != o->used)
			fail(o, errno != 0 ? -errno : -EIO);
	}
	o->used = 0;
}

static void add(struct json_out *o, const char *bytes, size_t n)
{
	while (n > 0) {
		size_t room = sizeof(o->buf) - o->used;
		size_t part = n < room ? n : room;

		memcpy(o->buf + o->used, bytes, part);
		o->used += part;
		bytes += part;
		n -= part;
		if (o->used == sizeof(o->buf))
			flush(o);
	}
}

void json_out_raw(struct json_out *o, const char *text)
{
	add(o, text, strlen(text));
}

static int add_dumped(const char *bytes, size_t n, void *ctx)
{
	add(ctx, bytes, n);
	return 0;
}

void json_out_value(struct json_out *o, const struct json_t *value)
{
	if (json_dump_callback(value, add_dumped, o, JSON_ENCODE_ANY | JSON_COMPACT) < 0)
		fail(o, -ENOMEM);
}

void json_out_string(struct json_out *o, const char *s)
{
	json_t *string;

	errno = 0;
	string = json_string(s);
	if (string == NULL) {
		fail(o, errno == ENOMEM ? -ENOMEM : -EINVAL);
		return;
	}
	json_out_value(o, string);
	json_decref(string);
}

/* Writes the digits of value before end, and returns their start. */
static char *decimal(char *end, uint64_t value)
{
	do {
		*--end = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	return end;
}

void json_out_member(struct json_out *o, const char *head, const char *s)
{
	json_out_raw(o, head);
	json_out_string(o, s);
}

void json_out_u64(struct json_out *o, uint64_t value)
{
	char digits[DECIMAL_MAX];
	char *end = digits + sizeof(digits);
	char *start = decimal(end, value);

	add(o, start, (size_t)(end - start));
}

void json_out_addr(struct json_out *o, uint64_t value)
{
	char text[sizeof("\"0x0123456789abcdef\"")];
	char *end = text + sizeof(text);
	char *p = end;

	*--p = '"';
	do {
		*--p = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value > 0);
	*--p = 'x';
	*--p = '0';
	*--p = '"';
	add(o, p, (size_t)(end - p));
}

void json_out_seconds(struct json_out *o, uint64_t us)
{
	char text[DECIMAL_MAX + 1]; /* the digits and the point */
	char *end = text + sizeof(text);
	char *p = end;
	bool is_needed = false; /* trailing zeros are left out */

	for (int i = 0; i < 6; i++) {
		is_needed |= us % 10 != 0 || i == 5;
		if (is_needed)
			*--p = (char)('0' + us % 10);
		us /= 10;
	}
	*--p = '.';
	p = decimal(p, us);
	add(o, p, (size_t)(end - p));
}

int json_out_finish(struct json_out *o)
{
	flush(o);
	if (o->error == 0) {
		errno = 0;
		if (fflush(o->file) != 0)
			fail(o, errno != 0 ? -errno : -EIO);
	}
	return o->error;
}
