/*
 * Makes a whole envelope, Sentry's unit of upload, around payloads that unwind has made: writes it
 * to a file, or compresses it for a request or for the spool (spool.h). An envelope contains one of
 * these:
 *
 *     a profile chunk
 *     a transaction, and the chunk that it refers to, for Spotlight: Sentry's viewer for developers
 *     a transaction, and its V1 profile: Sentry's former format, one profile for one transaction
 *     nothing, if the request is only for a client report
 *
 * An envelope for a request can have a client report in addition (reports.h).
 *
 * Payloads are files that are copied piece by piece and never parsed. sent_at_us is the Unix time
 * of the request in microseconds, or ENVELOPE_NOT_SENT: then the envelope has no sent_at.
 */
#ifndef LIB_SHIP_PACKAGE_H
#define LIB_SHIP_PACKAGE_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/ship/compression.h"
#include "lib/ship/reports.h"
#include "proto/envelope.h"

struct package {
	/* Random, unless the envelope has a transaction. */
	uint8_t event_id[ENVELOPE_EVENT_ID_BYTES];
	const char *sdk_name;
	const char *sdk_version;
	const char *platform; /* the value of "platform" in the payload */
	int payload_fd;	      /* read by pread(2): the offset stays; -1: no payload */
	uint64_t payload_size;
	/*
	 * Not 0: the payload is a transaction of this many bytes, followed by its V1 profile, and
	 * event_id is that of the transaction. 0: the payload is a chunk.
	 */
	uint64_t transaction_size;
	/*
	 * The anchor of a chunk: a transaction that refers to the chunk, because Spotlight shows
	 * only chunks to which a transaction refers. Not 0: anchor_fd has this transaction, of
	 * anchor_size bytes, and event_id is that of the transaction. 0: there is no anchor, as
	 * always with transaction_size.
	 */
	uint64_t anchor_size;
	int anchor_fd;
	enum compression compression;
};

/*
 * Returns the kind by which the envelope is counted and limited. An envelope without a payload
 * counts as ENVELOPE_CHUNK.
 */
static inline enum envelope_kind package_kind(const struct package *p)
{
	return p->transaction_size > 0 ? ENVELOPE_V1 : ENVELOPE_CHUNK;
}

/*
 * The most bytes that an envelope of the spool may decompress to: a payload of 50 MB, the server's
 * limit, and headers. A damaged or foreign file of 50 KB may decompress to more, and is refused.
 */
#define PACKAGE_UNPACKED_MAX (52u << 20)

/*
 * Writes the envelope to fd, uncompressed and without sent_at. Returns 0; -EIO if a payload file is
 * shorter than its size in p; -EINVAL if the platform is not UTF-8; -ENOMEM; or the error of
 * pread(2) or write(2). After an error fd has a part of the envelope.
 */
must_check int package_write(const struct package *p, int fd);

/*
 * Appends the envelope to *ret, compressed as p->compression says. If report is not NULL, it is the
 * last item. Returns 0, -E2BIG if *ret would exceed its limit (buf_init), or an error of
 * package_write() other than those of write(2). After an error *ret has a part of the envelope.
 */
must_check int package_compress(const struct package *p, int64_t sent_at_us,
				const struct reports_item *report, struct buf *ret);

/*
 * Makes the body of a request from an envelope of the spool. fd is a file that package_compress()
 * made with COMPRESSION_GZIP and ENVELOPE_NOT_SENT. Adds sent_at and, if it is not NULL, the
 * report, and appends the envelope, compressed by how, to *ret. Returns 0; -E2BIG if *ret would
 * exceed its limit; -EFBIG if the file decompresses to more than PACKAGE_UNPACKED_MAX; -EBADMSG if
 * the file is no envelope; -ENOMEM; or the error of pread(2). After an error *ret has a part of the
 * envelope.
 */
must_check int package_stamp(int fd, enum compression how, int64_t sent_at_us,
			     const struct reports_item *report, struct buf *ret);

#endif
