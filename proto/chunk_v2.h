/*
 * Writes a profile in Sentry's V2 sample format: the payload of a profile_chunk item. unwind calls
 * this module for each chunk.
 *
 * Source: Sentry's profiles specification 2.5.0, "V2 Sample Format"; docs/FORMATS.md says where
 * the server differs from it.
 */
#ifndef PROTO_CHUNK_V2_H
#define PROTO_CHUNK_V2_H

#include <stdio.h>

#include "proto/profile.h"

/* Bytes of a payload, uncompressed: the server's limit of 50 MB. */
#define CHUNK_V2_SIZE_MAX (50u * 1000u * 1000u)

/*
 * The reader of the payload. A payload for a file is the payload for the server and, in addition,
 * - the samples with profile_sample.is_for_files;
 * - members that the server does not know: "state" of samples (PROFILE_STATE_WAITING), "lines" of
 *   frames (PROFILE_LINES), "ready_known" (PROFILE_READY_KNOWN), "symbols" (PROFILE_SYMBOLS),
 *   "command_line" (PROFILE_COMMAND_LINE), and "code_id" of images that have a build-id.
 */
enum chunk_v2_reader {
	CHUNK_V2_SERVER,
	CHUNK_V2_FILE,
};

/*
 * Writes the payload, compact JSON without a newline, to out, and flushes out. Leaves out frames,
 * nodes and threads that no sample uses; writes all images. Does not keep the text in memory.
 *
 * The profile must have passed profile_check(). Does not check the size of the payload against
 * CHUNK_V2_SIZE_MAX; the constants in profile.h give an upper bound of the size beforehand.
 * Returns 0, -ENOMEM, or the negative errno of writing (-EIO if errno is not set).
 */
int chunk_v2_write(const struct profile *p, enum chunk_v2_reader reader, FILE *out);

#endif
