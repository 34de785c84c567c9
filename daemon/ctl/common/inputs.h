/*
 * Reads the profiles that the user names on the command line of `convert`, `view`, `compare` and
 * `send`. A path names one of these:
 * - a file of chunks, as envelopes or as payloads (proto/import/reader.h);
 * - an HTML page that `convert` has written (proto/import/page.h); `send` does not accept it;
 * - a directory: its files *.envelope are read in alphabetical order, without hidden ones. A
 *   directory without such files is no error.
 *
 * One file at a time is in memory. A file of more than INPUTS_FILE_MAX bytes cannot be read.
 */
#ifndef DAEMON_CTL_COMMON_INPUTS_H
#define DAEMON_CTL_COMMON_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/util.h"
#include "proto/import/chunk.h"

/* 1 GiB. While a chunk is parsed, it takes about ten times its bytes in memory. */
#define INPUTS_FILE_MAX (1u << 30)

/*
 * A callback for the content of a file, which is valid only during the call. path is for messages.
 * Returns 0, or -errno after a line on stderr.
 */
typedef int inputs_file(void *ctx, const char *path, const char *bytes, size_t size);

/*
 * Reads the files of n paths and passes the content of each file, not parsed, to the callback. It
 * is an error if a file cannot be read, or if the callback returns -errno. goes_on true: after an
 * error, the function continues with the next file; false: it stops. Returns 0 or the first error.
 * For each file that it cannot read, the function writes a line on stderr.
 */
must_check int inputs_each_file(char *const *paths, size_t n, bool goes_on, inputs_file *read,
				void *ctx);

/*
 * A callback for a chunk, which is valid only during the call. Returns 0; or -errno without a line
 * on stderr, since inputs_read() writes the line.
 */
typedef int inputs_chunk(void *ctx, const struct import_chunk *c);

/*
 * Reads the files of n paths, parses them and calls add with each chunk. Stops at the first error.
 * Returns 0, or -errno after a line on stderr that names the file and the fault.
 */
must_check int inputs_read(char *const *paths, size_t n, inputs_chunk *add, void *ctx);

/* As inputs_read(), for the content of one file, in memory. path is for messages. */
must_check int inputs_read_bytes(const char *path, const char *bytes, size_t size,
				 inputs_chunk *add, void *ctx);

#endif
