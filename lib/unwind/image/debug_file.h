/*
 * Opens the debug file of a stripped image: a separate file found by build-id or by
 * .gnu_debuglink, or the symbol table that is compressed in the image's section
 * .gnu_debugdata. Used for names and lines that the image itself does not have.
 *
 * A separate file is used only if it belongs to the image: it must have the same
 * build-id, or the checksum that .gnu_debuglink gives.
 */
#ifndef LIB_UNWIND_IMAGE_DEBUG_FILE_H
#define LIB_UNWIND_IMAGE_DEBUG_FILE_H

#include "lib/base/util.h"
#include "lib/unwind/image/file_source.h"
#include "lib/unwind/image/image.h"

/*
 * Bytes of .gnu_debugdata, decompressed; larger data are ignored. The function names of a browser
 * take 20 MB.
 */
#define DEBUG_FILE_PACKED_MAX (64u << 20)
/*
 * Bytes of a file found by .gnu_debuglink; a larger one is ignored, because its checksum takes a
 * second for each gigabyte. A file found by build-id has no such limit.
 */
#define DEBUG_FILE_LINKED_MAX (UINT64_C(1) << 30)

/*
 * Opens the separate debug file of i, with the functions in source->files. fd is the image's own
 * file. The caller closes *ret_fd. If there is no debug file, *ret_fd is -1, and the result is 0.
 * Marks the file that is read next (file_source.h): the debug file or, if *ret_fd is -1, the
 * image's own.
 *
 * Returns 0 or -EAGAIN. -EAGAIN: files cannot be opened now, for instance because the target has
 * ended (unwind_files.debug). *ret_fd is -1 then, and the caller tries again with another target
 * that maps the image.
 */
must_check int debug_file_open(const struct image *i, int fd, const struct file_source *source,
			       int *ret_fd);

/*
 * Reads the name of the debug file, without a slash, and its checksum from .gnu_debuglink. Returns
 * false if f has no such section, or a malformed one.
 */
bool debug_file_link(const struct elf_file *f, char ret_name[UNWIND_DEBUG_LINK_MAX],
		     uint32_t *ret_crc);

/*
 * Decompresses .gnu_debugdata of the file behind fd into a memfd, an ELF file with symbols only.
 * The caller closes *ret_fd, which is -1 if there are no such data, they are malformed or too
 * large, or no memfd can be made. Returns 0 or -ENOMEM.
 */
must_check int debug_file_unpack(int fd, int *ret_fd);

#endif
