/*
 * Compresses the body of a request, which comes in pieces, into a buffer. enum compression has two
 * values: gzip (lib/ship/gzip.h) and zstd. Only ship uses this module. sentry-profctl uses gzip.h
 * alone, since it does not link zstd.
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
 * Starts a compression whose result is appended to out, which must outlive c. Returns 0 or -ENOMEM.
 * After 0 call compressor_fini().
 */
must_check int compressor_init(struct compressor *c, enum compression how, struct buf *out);
void compressor_fini(struct compressor *c);

/*
 * compressor_add() compresses the next n bytes. compressor_finish() ends the stream; call it once,
 * after the last bytes. Both return 0; -ENOMEM; or -E2BIG if *out would exceed its limit
 * (buf_init). After an error *out has a part of the result.
 */
must_check int compressor_add(struct compressor *c, const void *bytes, size_t n);
must_check int compressor_finish(struct compressor *c);

#endif
