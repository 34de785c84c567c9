/*
 * RFC 1952, by zlib. Compresses a body that comes in pieces into a buffer; and
 * gives back piece by piece what is compressed in a file. So never more of a
 * payload is in memory than what it is compressed to.
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
 * out gets what follows, to its maximum, and must outlive g. Returns 0 or
 * -ENOMEM; after 0 gzip_fini is due.
 */
must_check int gzip_init(struct gzip *g, struct buf *out);
void gzip_fini(struct gzip *g);

/* Both return 0, or what buf_add returns. */
must_check int gzip_add(struct gzip *g, const void *bytes, size_t n);
must_check int gzip_finish(struct gzip *g);

/* As much is read at a time. */
#define GUNZIP_PIECE_BYTES (32 * 1024)

struct gunzip {
	z_stream stream;
	int fd;
	uint64_t at; /* of fd: what was read */
	bool ended;
	uint8_t piece[GUNZIP_PIECE_BYTES];
};

/*
 * Of the file fd, which must stay open, from its begin to its end, by pread.
 * Returns 0 or -ENOMEM; after 0 gunzip_fini is due.
 */
must_check int gunzip_init(struct gunzip *g, int fd);
void gunzip_fini(struct gunzip *g);

/*
 * The next bytes, at most size; 0 of them at the end, when the checksum has
 * been found right. Returns 0, -EBADMSG if the file is not one whole stream and
 * nothing else, -ENOMEM, or pread's error.
 */
must_check int gunzip_next(struct gunzip *g, void *bytes, size_t size, size_t *ret_n);

#endif
