/*
 * Decompresses what a stranger packed into an ELF file: sections by zstd, and
 * the small symbol table that distributions keep in .gnu_debugdata, by xz.
 * (Sections by zlib are libelf's.) Output and working memory are bounded,
 * whatever the input says.
 */
#ifndef LIB_UNWIND_ELF_UNPACK_H
#define LIB_UNWIND_ELF_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * Both give memory that the caller frees. Return 0, -ENODATA if the input is
 * malformed or incomplete, -E2BIG if it is more than max or needs more memory
 * to unpack than is given for it, -ENOMEM.
 */

/* The output has exactly size bytes, which the caller has found bearable. */
must_check int unpack_zstd(const uint8_t *in, size_t in_size, size_t size, uint8_t **ret);

must_check int unpack_xz(const uint8_t *in, size_t in_size, size_t max, uint8_t **ret,
			 size_t *ret_size);

#endif
