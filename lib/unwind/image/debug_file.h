/*
 * Where the rest of a stripped file is: a separate debug file by build-id, one
 * by .gnu_debuglink, or the symbol table packed into .gnu_debugdata.
 *
 * A separate file is used only if it proves that it belongs: by the same
 * build-id, or by the checksum that the link gives.
 */
#ifndef LIB_UNWIND_IMAGE_DEBUG_FILE_H
#define LIB_UNWIND_IMAGE_DEBUG_FILE_H

#include <stdbool.h>

#include "lib/base/util.h"
#include "lib/unwind/image/file_source.h"
#include "lib/unwind/image/image.h"

/*
 * .gnu_debugdata unpacked: the functions' names of a browser take 20 MB. It is
 * small by design.
 */
#define DEBUG_FILE_PACKED_MAX (64u << 20)
/* A checksum takes a second a gigabyte; by build-id there is no such limit. */
#define DEBUG_FILE_LINKED_MAX (UINT64_C(1) << 30)

/*
 * The debug file of i, whose own file is behind fd; the caller closes it.
 * *ret_fd is -1 if there is none. packed: .gnu_debugdata will do. From then on
 * it is that file which is read, if it is one of its own. Returns 0 or -ENOMEM.
 */
must_check int debug_file_open(const struct image *i, int fd, const struct file_source *source,
			       bool packed, int *ret_fd);

#endif
