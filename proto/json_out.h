/*
 * Writing JSON to a stream piece by piece: what proto's formats share. A chunk
 * has some 100,000 samples, too many for a tree of jansson's objects; the
 * caller writes the structure as text, and only strings go through jansson.
 *
 * Errors stick: after the first one nothing is written any more, and
 * json_out_finish returns it.
 */
#ifndef PROTO_JSON_OUT_H
#define PROTO_JSON_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Enough that a flush's cost disappears; small enough for a stack. */
#define JSON_OUT_BUF_SIZE 8192

struct json_out {
	FILE *file;
	int error; /* 0 or -errno */
	size_t used;
	char buf[JSON_OUT_BUF_SIZE];
};

/* file stays the caller's. */
void json_out_init(struct json_out *o, FILE *file);

/* JSON as it is. */
void json_out_raw(struct json_out *o, const char *text);
/* A string in quotes, escaped. s must be UTF-8: else -EINVAL. */
void json_out_string(struct json_out *o, const char *s);
/* A value of jansson's, compact. */
struct json_t;
void json_out_value(struct json_out *o, const struct json_t *value);
/* A member of an object: head is everything from the comma to the colon. */
void json_out_member(struct json_out *o, const char *head, const char *s);
/* A decimal number. */
void json_out_u64(struct json_out *o, uint64_t value);
/* An address: "0x..." in quotes, lower case, without leading zeros. */
void json_out_addr(struct json_out *o, uint64_t value);
/* Seconds with as many decimals as microseconds need: 1 to 6. */
void json_out_seconds(struct json_out *o, uint64_t us);

/*
 * Flushes, the stream too. Returns 0 or the first error: -EINVAL, -ENOMEM, the
 * stream's errno, -EIO if it gave none.
 */
int json_out_finish(struct json_out *o);

#endif
