/*
 * sentry-profctl convert --symbolize: adds to chunks the names, files, lines
 * and inlined functions that they lack, from the ELF files and debug files of
 * this machine (debug_files.h) and of debuginfod servers (debuginfod.h). The
 * files are read by a sentry-profd-unwind of our own, in its sandbox.
 *
 * A file is used if its build-id is that of the chunk's image. A line on stderr
 * names each image of which nothing is known, once, and says why.
 */
#ifndef DAEMON_CTL_SYMBOLIZER_H
#define DAEMON_CTL_SYMBOLIZER_H

#include "lib/base/util.h"
#include "proto/import/chunk.h"

struct symbolizer;

/* Starts unwind. Returns NULL after a line on stderr. */
struct symbolizer *symbolizer_new(void);
void symbolizer_free(struct symbolizer *s); /* takes NULL */

/*
 * *ret is c with other frames and stacks: where a frame has inlined functions,
 * they stand before it, with its address. It has c's lists and strings of s,
 * and symbolizer_release is due before c is released. Frames keep what c says
 * of them; a name made of a file and a distance, "libc.so.6+0x2724a", counts as
 * none. Returns 0 or -errno.
 */
must_check int symbolizer_chunk(struct symbolizer *s, const struct import_chunk *c,
				struct import_chunk *ret);
void symbolizer_release(struct import_chunk *c);

#endif
