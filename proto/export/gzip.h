/*
 * A gzip stream (RFC 1952) that is written to a FILE piece by piece. Inside
 * proto/export/. Errors stick: gzip_finish returns the first one.
 */
#ifndef PROTO_EXPORT_GZIP_H
#define PROTO_EXPORT_GZIP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "lib/base/util.h"

struct gzip {
	FILE *out;
	z_stream z;
	int error; /* 0 or -errno */
	uint8_t buf[65536];
};

/* out stays the caller's. gzip_finish is due, also behind an error. */
void gzip_init(struct gzip *g, FILE *out);
void gzip_write(struct gzip *g, const uint8_t *bytes, size_t n);
/* Ends and flushes the stream. Returns 0, -ENOMEM, or the stream's error. */
must_check int gzip_finish(struct gzip *g);

#endif
