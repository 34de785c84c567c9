/*
 * Writes the lines of an envelope, the container in which everything is sent to Sentry. The caller
 * (lib/ship/package.h) puts the payloads between them:
 *
 *     envelope_header         {"event_id":...,"sent_at":...,"sdk":{...}}\n
 *     envelope_item_header    {"type":...,"platform":...,"length":...,"content_type":...}\n
 *     the payload             length bytes
 *     ENVELOPE_LINE_END       \n
 *
 * An envelope may have several items. Every line is compact JSON in UTF-8 and includes its newline.
 *
 * Source: Sentry's SDK development documentation, "Envelopes" and "Envelope Items".
 */
#ifndef PROTO_ENVELOPE_H
#define PROTO_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

/* The main content of an envelope, which may have a client report besides. */
enum envelope_kind {
	ENVELOPE_CHUNK, /* a profile chunk */
	ENVELOPE_V1,	/* a transaction and its V1 profile */
	ENVELOPE_KIND_N
};

/*
 * Size of the longest line, with the NUL: room for 255 bytes of text in a line (an SDK's name and
 * version together, or a platform), each of which may be escaped as \u00XX.
 */
#define ENVELOPE_HEADER_SIZE 2048

/* The end of each line and of each payload. */
#define ENVELOPE_LINE_END "\n"

#define ENVELOPE_EVENT_ID_BYTES 16

/* The fields of the first line. */
struct envelope_fields {
	/* That of the transaction in the envelope; random if there is none. */
	uint8_t event_id[ENVELOPE_EVENT_ID_BYTES];
	/*
	 * Unix time at which the envelope is sent. For an envelope that is stored first it is
	 * ENVELOPE_NOT_SENT, and envelope_stamp() adds the time later. Reason: if this time and
	 * that of arrival differ by 55 minutes or more, the server takes the client's clock as
	 * wrong. It then shifts the times in transactions (V1) and client reports by the
	 * difference, but never those in chunks. Source: Relay, ClockDriftProcessor.
	 */
	int64_t sent_at_us;
	const char *sdk_name;
	const char *sdk_version;
};
#define ENVELOPE_NOT_SENT INT64_MIN

struct envelope_item {
	const char *type;
	const char *platform;	  /* NULL: left out */
	const char *content_type; /* NULL: left out */
	uint64_t length;	  /* bytes of the payload */
};

/*
 * Write one line, followed by a NUL, to ret, which has size bytes, and the line's length without
 * the NUL to *ret_len. Return 0; -EINVAL if a text is not UTF-8, a time is not within the years
 * 1970 to 9999, or a length exceeds INT64_MAX; -E2BIG if the line does not fit; or -ENOMEM.
 */
int envelope_header(const struct envelope_fields *e, char *ret, size_t size, size_t *ret_len)
	__attribute__((warn_unused_result));
int envelope_item_header(const struct envelope_item *item, char *ret, size_t size, size_t *ret_len)
	__attribute__((warn_unused_result));

/*
 * Writes a Unix time by RFC 3339 in UTC: "2026-01-02T03:04:05.678901Z". Returns 0, or -EINVAL if
 * the time is not within the years 1970 to 9999.
 */
#define ENVELOPE_TIME_SIZE 32
int envelope_time(int64_t us, char ret[ENVELOPE_TIME_SIZE]) __attribute__((warn_unused_result));

/*
 * Copies to ret a line that envelope_header() made with ENVELOPE_NOT_SENT, and adds sent_at. len is
 * the length of line with its newline. Returns as envelope_header(), or -EBADMSG if line does not
 * have the form of such a line.
 */
int envelope_stamp(const char *line, size_t len, int64_t sent_at_us, char *ret, size_t size,
		   size_t *ret_len) __attribute__((warn_unused_result));

#endif
