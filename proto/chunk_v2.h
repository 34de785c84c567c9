/*
 * The V2 sample format: the payload of a profile_chunk item.
 * Source: Sentry's profiles specification 2.5.0, "V2 Sample Format", and what
 * the server really does with it (docs/FORMATS.md).
 */
#ifndef PROTO_CHUNK_V2_H
#define PROTO_CHUNK_V2_H

#include <stdint.h>
#include <stdio.h>

#include "proto/profile.h"

/* 50 MB is the server's limit for the uncompressed item. */
#define CHUNK_V2_SIZE_MAX (50u * 1000u * 1000u)

/*
 * Upper bounds of the payload's parts in bytes, for who has to cut a chunk
 * before it grows too large: one sample; one frame index in a stack; a stack's
 * brackets; a frame without its strings (each string counts JSON-escaped: at
 * most CHUNK_V2_ESCAPE times its bytes).
 */
#define CHUNK_V2_SAMPLE_BYTES 96
#define CHUNK_V2_INDEX_BYTES  12
#define CHUNK_V2_STACK_BYTES  4
#define CHUNK_V2_FRAME_BYTES  128
#define CHUNK_V2_ESCAPE	      6

/*
 * Writes the payload, one line of compact JSON, to out; only the frames, nodes
 * and threads that samples use. Streams: needs memory for an index of nodes,
 * not for the text. The profile must have passed profile_check. Returns 0,
 * -ENOMEM, or -EIO / the stream's errno if writing failed.
 */
int chunk_v2_write(const struct profile *p, FILE *out);

#endif
