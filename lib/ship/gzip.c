#include "lib/ship/gzip.h"

#include <limits.h>

/* Bytes of output at a time: enough for zlib to be fast, little enough for the stack. */
#define PIECE_BYTES (32 * 1024)

/* zlib: the default window of 32 KiB, with a gzip header instead of its own. */
#define WINDOW_BITS (15 + 16)
#define MEM_LEVEL   8

/*
 * Measured on a synthetic chunk of 16 MB: level 1 compresses to 1/9.5 in 48 ms, level 4 to 1/10.8
 * in 76 ms, level 6 to 1/11.7 in 159 ms.
 */
#define LEVEL 4

int gzip_init(struct gzip *g, struct buf *out)
{
	*g = (struct gzip){.out = out};
	if (deflateInit2(&g->stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	return 0;
}

void gzip_fini(struct gzip *g)
{
	(void)deflateEnd(&g->stream);
}

/* Runs deflate until it has no more output for the input that it has. */
static int drain(struct gzip *g, int flush)
{
	uint8_t piece[PIECE_BYTES];
	int r;

	do {
		g->stream.next_out = piece;
		g->stream.avail_out = sizeof(piece);
		/* Z_BUF_ERROR means that there was nothing to do, which is no error here. */
		(void)deflate(&g->stream, flush);
		r = buf_add(g->out, piece, sizeof(piece) - g->stream.avail_out);
		if (r < 0)
			return r;
	} while (g->stream.avail_out == 0);
	return 0;
}

int gzip_add(struct gzip *g, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n > 0) {
		size_t piece = min_size(n, UINT_MAX);
		int r;

		/* zlib's interface takes no pointer to const; it only reads. */
		g->stream.next_in = (uint8_t *)(uintptr_t)at;
		g->stream.avail_in = (unsigned int)piece;
		r = drain(g, Z_NO_FLUSH);
		if (r < 0)
			return r;
		at += piece;
		n -= piece;
	}
	return 0;
}

int gzip_finish(struct gzip *g)
{
	return drain(g, Z_FINISH);
}

int gunzip_init(struct gunzip *g, int fd)
{
	g->stream = (z_stream){0};
	g->fd = fd;
	g->at = 0;
	g->ended = false;
	return inflateInit2(&g->stream, WINDOW_BITS) == Z_OK ? 0 : -ENOMEM;
}

void gunzip_fini(struct gunzip *g)
{
	(void)inflateEnd(&g->stream);
}

/* Reads the next piece of the file. Returns 1, 0 at its end, or the error of pread(2). */
static int fill(struct gunzip *g)
{
	ssize_t n;

	do
		n = pread(g->fd, g->piece, sizeof(g->piece), (off_t)g->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	g->at += (uint64_t)n;
	g->stream.next_in = g->piece;
	g->stream.avail_in = (unsigned int)n;
	return n > 0;
}

/* Checks that nothing follows the stream. */
static int end_stream(struct gunzip *g)
{
	int r = g->stream.avail_in > 0 ? 1 : fill(g);

	g->ended = true;
	return r > 0 ? -EBADMSG : r;
}

int gunzip_next(struct gunzip *g, void *bytes, size_t size, size_t *ret_n)
{
	const unsigned int want = (unsigned int)min_size(size, UINT_MAX);
	int r = 0;

	g->stream.next_out = bytes;
	g->stream.avail_out = want;
	while (!g->ended && g->stream.avail_out > 0) {
		if (g->stream.avail_in == 0) {
			r = fill(g);
			if (r <= 0)
				return r < 0 ? r : -EBADMSG;
		}
		switch (inflate(&g->stream, Z_NO_FLUSH)) {
		case Z_OK:
			break;
		case Z_STREAM_END:
			r = end_stream(g);
			if (r < 0)
				return r;
			break;
		case Z_MEM_ERROR:
			return -ENOMEM;
		default:
			return -EBADMSG;
		}
	}
	*ret_n = want - g->stream.avail_out;
	return 0;
}
