/*
 * Writes JSON to a stream piece by piece, for the payloads of proto/ and the formats of
 * proto/export/. The caller writes the structure as text; strings are escaped by jansson. (A
 * chunk may have 100,000 samples, too many for a tree of jansson objects.)
 *
 * Errors are sticky: after the first error nothing is written, and json_out_finish() returns
 * that error. The caller is responsible for the structure: commas, colons and brackets.
 */
#ifndef PROTO_JSON_OUT_H
#define PROTO_JSON_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Large enough that writes cost little, small enough for the stack. */
#define JSON_OUT_BUF_SIZE 8192

struct json_out {
	FILE *file;
	int error; /* 0 or -errno */
	size_t used;
	char buf[JSON_OUT_BUF_SIZE];
};

/* Begins to write to file, which stays the caller's. Nothing has to be freed. */
void json_out_init(struct json_out *o, FILE *file);

/* Writes text as it is. */
void json_out_raw(struct json_out *o, const char *text);
/* Writes s as a string, quoted and escaped. If s is not UTF-8 the error is -EINVAL. */
void json_out_string(struct json_out *o, const char *s);
/* Writes a jansson value as compact JSON. */
struct json_t;
void json_out_value(struct json_out *o, const struct json_t *value);
/* Writes head as it is, such as ",\"name\":", and then s as a string. */
void json_out_member(struct json_out *o, const char *head, const char *s);
/* Writes a decimal number. */
void json_out_u64(struct json_out *o, uint64_t value);
/* Writes an address as a string: "0x", then lower-case digits without leading zeros. */
void json_out_addr(struct json_out *o, uint64_t value);
/* Writes microseconds as a number of seconds, with 1 to 6 decimals as needed. */
void json_out_seconds(struct json_out *o, uint64_t us);

/*
 * Writes what is buffered, and flushes the stream. Returns 0 or the first error: -EINVAL for a
 * string that is not UTF-8, -ENOMEM, or the negative errno of writing (-EIO if errno is not set).
 */
int json_out_finish(struct json_out *o);

#endif
