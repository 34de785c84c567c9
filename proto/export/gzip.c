#include "proto/export/gzip.h"

#include <string.h>

/* Windows of 32 KB, and 16: with the header of gzip (zlib.h). */
#define WINDOW_BITS (15 + 16)
/* As zlib's default says. */
#define MEMORY_LEVEL 8
/* What one call takes; zlib counts in 32 bits. */
#define PIECE_BYTES (1u << 20)

void gzip_init(struct gzip *g, FILE *out)
{
	memset(&g->z, 0, sizeof(g->z));
	g->out = out;
	g->error = deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
				WINDOW_BITS, MEMORY_LEVEL,
				Z_DEFAULT_STRATEGY) == Z_OK
			   ? 0
			   : -ENOMEM;
}

/* Takes all that z has, and with Z_FINISH writes the end, too. */
static void compress_piece(struct gzip *g, int flush)
{
	do {
		size_t n;

		g->z.next_out = g->buf;
		g->z.avail_out = sizeof(g->buf);
		(void)deflate(&g->z, flush);
		n = sizeof(g->buf) - g->z.avail_out;
		errno = 0;
		if (fwrite(g->buf, 1, n, g->out) != n)
			g->error = errno != 0 ? -errno : -EIO;
	} while (g->z.avail_out == 0 && g->error == 0);
}

void gzip_write(struct gzip *g, const uint8_t *bytes, size_t n)
{
	while (n > 0 && g->error == 0) {
		const size_t piece = min_size(n, PIECE_BYTES);

		/* zlib only reads there; its pointer is not const. */
		memcpy(&g->z.next_in, &bytes, sizeof(bytes));
		g->z.avail_in = (uInt)piece;
		compress_piece(g, Z_NO_FLUSH);
		bytes += piece;
		n -= piece;
	}
}

int gzip_finish(struct gzip *g)
{
	if (g->error == 0)
		compress_piece(g, Z_FINISH);
	errno = 0;
	if (g->error == 0 && fflush(g->out) != 0)
		g->error = errno != 0 ? -errno : -EIO;
	(void)deflateEnd(&g->z);
	return g->error;
}
