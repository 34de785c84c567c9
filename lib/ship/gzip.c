#include "lib/ship/gzip.h"

#include <limits.h>
#include <stdbool.h>

/* Enough for zlib to work through at a time, and no burden on the stack. */
#define PIECE_BYTES (32 * 1024)

/* zlib: the default window of 32 KiB, with a gzip header instead of its own. */
#define WINDOW_BITS (15 + 16)
#define MEM_LEVEL   8

/*
 * Of a made-up chunk of 16 MB, on one core: level 1 leaves 1/9.5 in 48 ms, 4
 * leaves 1/10.8 in 76 ms, 6 leaves 1/11.7 in 159 ms.
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
		/* Z_BUF_ERROR: there was nothing to do. No error here. */
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

int gzip_add_fd(struct gzip *g, int fd, uint64_t size)
{
	uint8_t piece[PIECE_BYTES];
	uint64_t at = 0;

	while (at < size) {
		size_t want = (size_t)min_u64(size - at, sizeof(piece));
		ssize_t n = pread(fd, piece, want, (off_t)at);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = gzip_add(g, piece, (size_t)n);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

int gzip_finish(struct gzip *g)
{
	return drain(g, Z_FINISH);
}
