/*
 * The V2 sample format: the payload of a profile_chunk item.
 * Source: Sentry's profiles specification 2.5.0, "V2 Sample Format", and what
 * the server really does with it (docs/FORMATS.md).
 */
#ifndef PROTO_CHUNK_V2_H
#define PROTO_CHUNK_V2_H

#include <stdio.h>

#include "proto/profile.h"

/* 50 MB is the server's limit for the uncompressed item. */
#define CHUNK_V2_SIZE_MAX (50u * 1000u * 1000u)

/*
 * Whom a payload is made for. A payload for a file has what one for the server
 * has, byte for byte, and two kinds of members that the server does not know:
 * samples that wait have "state" (without any, the first sample says that it
 * runs), images with a build-id have "code_id".
 */
enum chunk_v2_reader {
	CHUNK_V2_SERVER,
	CHUNK_V2_FILE,
};

/*
 * Writes the payload, one line of compact JSON, to out, and flushes it; only
 * the frames, nodes and threads that samples use. Streams: needs memory for an
 * index of nodes and frames, not for the text. The profile must have passed
 * profile_check. Its size is at most the sum of the bounds in profile.h; what
 * they cannot know (strings) is for the caller to compare with
 * CHUNK_V2_SIZE_MAX. Returns 0, -ENOMEM, or the stream's errno (-EIO if it
 * gave none) if writing failed.
 */
int chunk_v2_write(const struct profile *p, enum chunk_v2_reader reader, FILE *out);

#endif
