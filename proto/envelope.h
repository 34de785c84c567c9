/*
 * The envelope: header lines around payloads that are not read here.
 * Source: Sentry's SDK development documentation, "Envelopes" and "Envelope
 * Items".
 *
 *     envelope_header         {"event_id":...,"sent_at":...,"sdk":{...}}\n
 *     envelope_item_header    {"type":...,"platform":...,"length":...}\n
 *     the payload             length bytes
 *     ENVELOPE_LINE_END       \n
 *
 * further items in the same way. Every line is compact JSON in ASCII and
 * UTF-8, and contains its newline.
 */
#ifndef PROTO_ENVELOPE_H
#define PROTO_ENVELOPE_H

#include <stddef.h>
#include <stdint.h>

/* What an envelope is sent for; a client report may be in it besides. */
enum envelope_kind {
	ENVELOPE_CHUNK, /* a profile chunk */
	ENVELOPE_V1,	/* a transaction, and its V1 profile */
	ENVELOPE_KIND_N
};

/*
 * With the NUL that follows the line. Texts in them are an SDK's name and
 * version and a platform of up to 255 bytes, each byte escaped in the worst
 * case as \u00XX.
 */
#define ENVELOPE_HEADER_SIZE 2048

/* Ends each line, and follows each payload. */
#define ENVELOPE_LINE_END "\n"

#define ENVELOPE_EVENT_ID_BYTES 16

struct envelope {
	uint8_t event_id[ENVELOPE_EVENT_ID_BYTES]; /* random */
	/*
	 * Unix time at which it is sent, ENVELOPE_NOT_SENT for one that is
	 * kept: the server corrects times by it, so a stored one is wrong.
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
 * Both write one line, followed by a NUL, to ret, and its length without the
 * NUL to *ret_len. They return 0, -EINVAL if a text is not UTF-8 or a time is
 * not within the years 1970 to 9999, -E2BIG if the line does not fit, -ENOMEM.
 */
int envelope_header(const struct envelope *e, char *ret, size_t size, size_t *ret_len)
	__attribute__((warn_unused_result));
int envelope_item_header(const struct envelope_item *item, char *ret, size_t size, size_t *ret_len)
	__attribute__((warn_unused_result));

/*
 * Unix time as RFC 3339 in UTC: "2026-01-02T03:04:05.678901Z". 0, or -EINVAL:
 * not within the years 1970 to 9999.
 */
#define ENVELOPE_TIME_SIZE 32
int envelope_time(int64_t us, char ret[ENVELOPE_TIME_SIZE]) __attribute__((warn_unused_result));

/*
 * The line of envelope_header that was kept without a time, len bytes with its
 * newline, as it is to be sent: the same with sent_at_us. Returns as above, or
 * -EBADMSG if it is no such line.
 */
int envelope_stamp(const char *line, size_t len, int64_t sent_at_us, char *ret, size_t size,
		   size_t *ret_len) __attribute__((warn_unused_result));

#endif
