#include "lib/unwind/elf/unpack.h"

#include <lzma.h>
#include <stdlib.h>
#include <zstd.h>

/* Bytes of working memory. xz -9, the highest level, needs 65 MiB. */
#define XZ_MEMORY_MAX (80u << 20)
/* The first guess of the output size, as a multiple of the input size. */
#define XZ_RATIO 4

int unpack_zstd(const uint8_t *in, size_t in_size, size_t size, uint8_t **ret)
{
	uint8_t *out = malloc(size);
	size_t n;

	if (!out)
		return -ENOMEM;
	n = ZSTD_decompress(out, size, in, in_size);
	if (ZSTD_isError(n) || n != size) {
		free(out);
		return -ENODATA;
	}
	*ret = out;
	return 0;
}

/* Makes room for more output, up to max. Returns 0, -E2BIG or -ENOMEM. */
static int grow(lzma_stream *s, size_t max, uint8_t **out, size_t *size)
{
	size_t used = *size - s->avail_out;
	uint8_t *bytes;

	if (*size == max)
		return -E2BIG;
	*size = min_size(max, *size * 2);
	bytes = realloc(*out, *size);
	if (!bytes)
		return -ENOMEM;
	*out = bytes;
	s->next_out = bytes + used;
	s->avail_out = *size - used;
	return 0;
}

static int error_of(lzma_ret r)
{
	if (r == LZMA_MEM_ERROR)
		return -ENOMEM;
	return r == LZMA_MEMLIMIT_ERROR ? -E2BIG : -ENODATA;
}

int unpack_xz(const uint8_t *in, size_t in_size, size_t max, uint8_t **ret, size_t *ret_size)
{
	lzma_stream s = LZMA_STREAM_INIT;
	uint8_t *out = NULL;
	lzma_ret code;
	size_t size;
	int r = 0;

	if (in_size == 0 || max == 0)
		return -ENODATA;
	size = in_size < max / XZ_RATIO ? in_size * XZ_RATIO : max;
	if (lzma_stream_decoder(&s, XZ_MEMORY_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	out = malloc(size);
	if (!out)
		r = -ENOMEM;
	s.next_in = in;
	s.avail_in = in_size;
	s.next_out = out;
	s.avail_out = size;
	while (r == 0) {
		code = lzma_code(&s, LZMA_FINISH);
		if (code == LZMA_STREAM_END)
			break;
		if (code != LZMA_OK)
			r = error_of(code);
		/* At the end of the input the next round reports what is missing. */
		else if (s.avail_out == 0 && s.avail_in > 0)
			r = grow(&s, max, &out, &size);
	}
	if (r == 0 && size == s.avail_out)
		r = -ENODATA;
	if (r == 0) {
		*ret = out;
		*ret_size = size - s.avail_out;
	} else {
		free(out);
	}
	lzma_end(&s);
	return r;
}
