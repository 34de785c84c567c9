/*
 * gzip (RFC 1952), by zlib: compresses a body that comes in pieces into a buffer, and decompresses
 * a file piece by piece. A whole payload is never in memory uncompressed.
 */
#ifndef LIB_SHIP_GZIP_H
#define LIB_SHIP_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

#include "lib/base/buf.h"

struct gzip {
	z_stream stream;
	struct buf *out;
};

/*
 * Starts a compression whose result is appended to out, which must outlive g. Returns 0 or -ENOMEM.
 * After 0 call gzip_fini().
 */
must_check int gzip_init(struct gzip *g, struct buf *out);
void gzip_fini(struct gzip *g);

/*
 * gzip_add() compresses the next n bytes. gzip_finish() ends the stream; call it once, after the
 * last bytes. Both return 0; -ENOMEM; or -E2BIG if *out would exceed its limit (buf_init). After an
 * error *out has a part of the result.
 */
must_check int gzip_add(struct gzip *g, const void *bytes, size_t n);
must_check int gzip_finish(struct gzip *g);

/* Bytes that are read at a time. */
#define GUNZIP_PIECE_BYTES (32 * 1024)

struct gunzip {
	z_stream stream;
	int fd;
	uint64_t at; /* offset of the next read */
	bool ended;  /* the end of the stream was read */
	uint8_t piece[GUNZIP_PIECE_BYTES];
};

/*
 * Starts to decompress a file from its beginning, by pread(2): the offset of fd does not change. fd
 * stays the caller's, and must stay open. Returns 0 or -ENOMEM. After 0 call gunzip_fini().
 */
must_check int gunzip_init(struct gunzip *g, int fd);
void gunzip_fini(struct gunzip *g);

/*
 * Decompresses the next size bytes (1 to UINT_MAX) of the stream into bytes. *ret_n: number of
 * bytes written. *ret_n is below size only if the stream has ended and its checksum is correct. In
 * all later calls *ret_n is 0. Returns 0; -EBADMSG if the file is not exactly one complete gzip
 * stream; -ENOMEM; or the error of pread(2).
 */
must_check int gunzip_next(struct gunzip *g, void *bytes, size_t size, size_t *ret_n);

#endif
