/* What an envelope is sent for; a client report may be in it besides. */
#ifndef PROTO_ENVELOPE_KIND_H
#define PROTO_ENVELOPE_KIND_H

enum envelope_kind {
	ENVELOPE_CHUNK, /* a profile chunk */
	ENVELOPE_V1,	/* a transaction, and its V1 profile */
	ENVELOPE_KIND_N
};

#endif
