/*
 * The files that sentry-profctl convert reads: each path is a file of
 * envelopes or payloads (proto/import/text.h), or a directory, whose files
 * NAME.envelope are read in the order of their names.
 */
#ifndef DAEMON_CTL_INPUTS_H
#define DAEMON_CTL_INPUTS_H

#include <stddef.h>

#include "lib/base/util.h"
#include "proto/import/chunk.h"

/* One chunk takes some ten times its bytes while it is parsed. */
#define INPUTS_FILE_MAX (1u << 30)

/* Gets each chunk, which the caller of it releases. Returns 0 or -errno. */
typedef int inputs_chunk(void *ctx, const struct import_chunk *c);

/*
 * Reads all paths, one chunk at a time. Returns 0, or an error: then a line on
 * stderr names the file and what is wrong with it.
 */
must_check int inputs_read(char *const *paths, size_t n, inputs_chunk *add,
			   void *ctx);

#endif
