/*
 * Compresses a body that comes in pieces, from memory and from files, into a
 * buffer: RFC 1952, by zlib. A payload is read piece by piece, so that never
 * more of it is in memory than what it is compressed to.
 */
#ifndef LIB_SHIP_GZIP_H
#define LIB_SHIP_GZIP_H

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

/*
 * Adds the first size bytes of fd, by pread: its position stays. -EIO if it
 * has fewer, or pread's error.
 */
must_check int gzip_add_fd(struct gzip *g, int fd, uint64_t size);

#endif
