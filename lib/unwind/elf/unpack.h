/*
 * Decompresses parts of ELF files: sections compressed with zstd, and the small
 * symbol table that distributions store in .gnu_debugdata, compressed with xz.
 * (libelf decompresses zlib.) The input is not trusted: output and working memory
 * are bounded, whatever the input says.
 *
 * The caller frees *ret. Both functions return 0; -ENODATA if the input is malformed
 * or incomplete, or its output empty; or -ENOMEM.
 */
#ifndef LIB_UNWIND_ELF_UNPACK_H
#define LIB_UNWIND_ELF_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/*
 * size: bytes of the output, as the section's header gives them. The caller has checked that size
 * is above 0 and within a limit. Returns -ENODATA also if the output has another size.
 */
must_check int unpack_zstd(const uint8_t *in, size_t in_size, size_t size, uint8_t **ret);

/* Returns also -E2BIG, if the output is above max bytes or needs too much working memory. */
must_check int unpack_xz(const uint8_t *in, size_t in_size, size_t max, uint8_t **ret,
			 size_t *ret_size);

#endif
