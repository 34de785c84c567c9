/*
 * Reads the chunks in the content of a file, one after the other. The content is one of:
 *
 *   an envelope (docs/FORMATS.md, "The envelope"): items of the type profile_chunk are
 *   chunks; other items are skipped;
 *   V2 payloads without an envelope: JSON objects, with or without blanks between them.
 *
 * Only one payload at a time is parsed: a parsed payload takes about ten times the memory of its
 * text.
 */
#ifndef PROTO_IMPORT_READER_H
#define PROTO_IMPORT_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/import/chunk.h"

/*
 * The limit of a header line of an envelope, in bytes. The content is an envelope if its first line
 * - is at most that long,
 * - is a complete JSON object, and
 * - has neither "profile" nor "version", which are members of every payload.
 * Otherwise the content is payloads.
 */
#define IMPORT_LINE_MAX 65536

struct import_reader {
	const char *bytes; /* the content, owned by the caller */
	size_t size, at;   /* at: the offset of the next item or payload */
	bool is_envelope;
	/* The payload of the chunk that was read last, within bytes. */
	const char *payload;
	size_t payload_size;
};

/* Begins to read bytes, which have to stay valid until the last import_reader_next(). */
void import_reader_init(struct import_reader *t, const char *bytes, size_t size);

/*
 * Reads the next chunk, which the caller releases by import_chunk_fini() (chunk.h). Returns 1 with
 * a chunk, 0 at the end, -EBADMSG with *fault, or -ENOMEM. After an error all further calls return
 * 0.
 */
int import_reader_next(struct import_reader *t, struct import_chunk *ret,
		       struct import_fault *fault) __attribute__((warn_unused_result));

#endif
