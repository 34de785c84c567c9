/*
 * The files that sentry-profctl convert, compare and send read: each path is a
 * file of envelopes or payloads (proto/import/text.h), or a directory, whose
 * files NAME.envelope are read in the order of their names.
 */
#ifndef DAEMON_CTL_INPUTS_H
#define DAEMON_CTL_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/util.h"
#include "proto/import/chunk.h"

/* One chunk takes some ten times its bytes while it is parsed. */
#define INPUTS_FILE_MAX (1u << 30)

/*
 * Gets the bytes of each file; path is for a person. Returns 0, or -errno after
 * a line on stderr.
 */
typedef int inputs_file(void *ctx, const char *path, const char *bytes, size_t size);

/*
 * Reads the files of all paths, one at a time. After an error, of a file or of
 * read, it stops, or goes on with the next file. Returns 0 or the first error;
 * a line on stderr names each file that could not be read.
 */
must_check int inputs_each_file(char *const *paths, size_t n, bool goes_on, inputs_file *read,
				void *ctx);

/* Gets each chunk, which the caller of it releases. Returns 0 or -errno. */
typedef int inputs_chunk(void *ctx, const struct import_chunk *c);

/*
 * Reads all paths, one chunk at a time. Returns 0, or an error: then a line on
 * stderr names the file and what is wrong with it.
 */
must_check int inputs_read(char *const *paths, size_t n, inputs_chunk *add, void *ctx);

/* The same for bytes that path names to the user. */
must_check int inputs_read_bytes(const char *path, const char *bytes, size_t size,
				 inputs_chunk *add, void *ctx);

#endif
