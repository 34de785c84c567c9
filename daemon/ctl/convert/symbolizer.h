/*
 * Adds names, source files, lines and inlined functions to the frames of chunks, for
 * `sentry-profctl convert --symbolize`. It finds them in the program files and debug files of this
 * machine (debug_files.h) and in debug files from debuginfod servers (debuginfod.h). A
 * sentry-profd-unwind reads these files in its sandbox (file_reader.h).
 *
 * A file is used only if its build-id or debug_id is that of the image (the mapped ELF file) in the
 * chunk. For each image without names one line on stderr gives the reason.
 */
#ifndef DAEMON_CTL_CONVERT_SYMBOLIZER_H
#define DAEMON_CTL_CONVERT_SYMBOLIZER_H

#include "lib/base/util.h"
#include "proto/import/chunk.h"

struct symbolizer;

/* Starts sentry-profd-unwind. Returns NULL after a line on stderr. */
struct symbolizer *symbolizer_new(void);
void symbolizer_free(struct symbolizer *s); /* accepts NULL */

/*
 * Makes *ret: the chunk c with new frames and stacks. Functions that were inlined into a frame
 * become frames of their own, with the same address: if g() was inlined into f(), the stack "f,
 * main" (leaf first) becomes "g, f, main". A frame of c that has a name keeps it;
 * "libc.so.6+0x2724a" (file and offset) does not count as a name.
 *
 * *ret points to the other lists of c and to strings of c and s: the caller calls
 * symbolizer_release(ret) before it frees c or s. Returns 0 or -errno; after an error there is
 * nothing to release.
 */
must_check int symbolizer_chunk(struct symbolizer *s, const struct import_chunk *c,
				struct import_chunk *ret);

/* Frees the frames and stacks of a chunk from symbolizer_chunk(). */
void symbolizer_release(struct import_chunk *c);

#endif
