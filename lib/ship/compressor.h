/*
 * A body that comes in pieces, compressed into a buffer, in one of the ways
 * that there are: lib/ship/gzip.h, or zstd.
 */
#ifndef LIB_SHIP_COMPRESSOR_H
#define LIB_SHIP_COMPRESSOR_H

#include <zstd.h>

#include "lib/ship/compression.h"
#include "lib/ship/gzip.h"

struct compressor {
	enum compression how;
	struct gzip gzip;
	ZSTD_CCtx *zstd;
	struct buf *out;
};

/*
 * out gets what follows, to its maximum, and must outlive c. Returns 0 or
 * -ENOMEM; after 0 compressor_fini is due.
 */
must_check int compressor_init(struct compressor *c, enum compression how, struct buf *out);
void compressor_fini(struct compressor *c);

/* Both return 0, -ENOMEM, or what buf_add returns. */
must_check int compressor_add(struct compressor *c, const void *bytes, size_t n);
must_check int compressor_finish(struct compressor *c);

#endif
