/*
 * The chunks in the bytes of one file, one after the other. The bytes are one
 * of:
 *
 *   an envelope (docs/FORMATS.md, "The envelope"): each item of the type
 *   profile_chunk is a chunk, other items are skipped;
 *   V2 payloads without an envelope: JSON objects, one behind the other.
 *
 * Only one payload is parsed at a time. jansson takes some ten times the bytes
 * of a payload.
 */
#ifndef PROTO_IMPORT_TEXT_H
#define PROTO_IMPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/import/chunk.h"

/*
 * A header line of an envelope is shorter. A first line that is longer, or no
 * whole JSON object, begins a payload.
 */
#define IMPORT_LINE_MAX 65536

struct import_text {
	const char *bytes; /* the caller's, until the last import_text_next */
	size_t size, at;
	bool is_envelope;
	/* The bytes of the last chunk that was read: of its payload. */
	const char *payload;
	size_t payload_size;
};

void import_text_init(struct import_text *t, const char *bytes, size_t size);

/*
 * Reads the next chunk; import_chunk_fini is due for it. Returns 1, 0 at the
 * end, -EBADMSG with *fault, or -ENOMEM. Behind an error there is no next one.
 */
int import_text_next(struct import_text *t, struct import_chunk *ret, struct import_fault *fault)
	__attribute__((warn_unused_result));

#endif
