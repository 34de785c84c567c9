#include "lib/ship/compressor.h"

/* Bytes of output at a time: as in gzip.c. */
#define PIECE_BYTES (32 * 1024)

/* zstd's default. gzip's level is chosen to take about as long. */
#define ZSTD_LEVEL 3

/* 512 KB instead of the level's 2 MB: texts in a chunk recur at shorter distances. */
#define ZSTD_WINDOW_LOG 19

static int zstd_init(struct compressor *c)
{
	c->zstd = ZSTD_createCCtx();
	if (c->zstd == NULL)
		return -ENOMEM;
	/* These fail only for values out of range. */
	(void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	(void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_windowLog, ZSTD_WINDOW_LOG);
	(void)ZSTD_CCtx_setParameter(c->zstd, ZSTD_c_checksumFlag, 1);
	return 0;
}

/* Compresses all of in; with ZSTD_e_end also ends the frame. */
static int zstd_drain(struct compressor *c, ZSTD_inBuffer *in, ZSTD_EndDirective end)
{
	uint8_t piece[PIECE_BYTES];
	size_t left;

	do {
		ZSTD_outBuffer out = {.dst = piece, .size = sizeof(piece)};
		int r;

		left = ZSTD_compressStream2(c->zstd, &out, in, end);
		/* The only possible error is a lack of memory. */
		if (ZSTD_isError(left))
			return -ENOMEM;
		r = buf_add(c->out, piece, out.pos);
		if (r < 0)
			return r;
	} while (in->pos < in->size || (end == ZSTD_e_end && left > 0));
	return 0;
}

int compressor_init(struct compressor *c, enum compression how, struct buf *out)
{
	*c = (struct compressor){.how = how, .out = out};
	return how == COMPRESSION_ZSTD ? zstd_init(c) : gzip_init(&c->gzip, out);
}

void compressor_fini(struct compressor *c)
{
	if (c->how == COMPRESSION_ZSTD)
		(void)ZSTD_freeCCtx(c->zstd);
	else
		gzip_fini(&c->gzip);
}

int compressor_add(struct compressor *c, const void *bytes, size_t n)
{
	ZSTD_inBuffer in = {.src = bytes, .size = n};

	return c->how == COMPRESSION_ZSTD ? zstd_drain(c, &in, ZSTD_e_continue)
					  : gzip_add(&c->gzip, bytes, n);
}

int compressor_finish(struct compressor *c)
{
	ZSTD_inBuffer in = {.src = NULL};

	return c->how == COMPRESSION_ZSTD ? zstd_drain(c, &in, ZSTD_e_end) : gzip_finish(&c->gzip);
}
