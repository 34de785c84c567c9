/*
 * Writes a profile in Sentry's V2 sample format: the payload of a profile_chunk item, which unwind
 * makes of each chunk.
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
 * The reader of the payload. A payload for a file is the payload for the server with members added
 * that the server does not know: "state" of samples (PROFILE_STATE_WAITING), "lines" of frames
 * (PROFILE_LINES), "ready_known" (PROFILE_READY_KNOWN), "symbols" (PROFILE_SYMBOLS), and "code_id"
 * of images that have a build-id. It also has the samples that separate a ready time from a wait
 * (profile_sample.is_for_files).
 */
enum chunk_v2_reader {
	CHUNK_V2_SERVER,
	CHUNK_V2_FILE,
};

/*
 * Writes the payload, one line of compact JSON, to out, and flushes out. Frames, nodes and threads
 * that no sample uses are left out; all images are written. The text is written as it is made;
 * memory is allocated for an index of nodes and frames only.
 *
 * The profile must have passed profile_check(). The size of the payload, but for its strings, is
 * bounded by the constants in profile.h; the caller checks the size against CHUNK_V2_SIZE_MAX.
 * Returns 0, -ENOMEM, or the negative errno of writing (-EIO if there is none).
 */
int chunk_v2_write(const struct profile *p, enum chunk_v2_reader reader, FILE *out);

#endif
