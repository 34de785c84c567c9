/*
 * Decompression of parts of ELF files: sections compressed with zstd, and the
 * small symbol table that distributions store in .gnu_debugdata, compressed with
 * xz. (libelf decompresses zlib.) The input is not trusted: output and working
 * memory are bounded, whatever the input says.
 *
 * Both functions return memory that the caller frees. They return 0, -ENODATA if
 * the input is malformed or incomplete, -E2BIG if the output is larger than max
 * or decompression needs too much memory, or -ENOMEM.
 */
#ifndef LIB_UNWIND_ELF_UNPACK_H
#define LIB_UNWIND_ELF_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* Decompresses to exactly size bytes, a size that the caller has checked. */
must_check int unpack_zstd(const uint8_t *in, size_t in_size, size_t size, uint8_t **ret);

/* Decompresses to at most max bytes. */
must_check int unpack_xz(const uint8_t *in, size_t in_size, size_t max, uint8_t **ret,
			 size_t *ret_size);

#endif
