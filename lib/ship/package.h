/*
 * An envelope around one profile chunk, a transaction and its V1 profile, or a
 * transaction and the chunk that it refers to,
 * whose payload is a file that is never read as a whole: written to another
 * file, or compressed to be sent. A client report may go with what is sent, or
 * alone.
 */
#ifndef LIB_SHIP_PACKAGE_H
#define LIB_SHIP_PACKAGE_H

#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/ship/compression.h"
#include "lib/ship/reports.h"
#include "proto/envelope.h"

struct package {
	uint8_t event_id[ENVELOPE_EVENT_ID_BYTES]; /* random */
	const char *sdk_name;
	const char *sdk_version;
	const char *platform; /* the payload's, byte for byte */
	int payload_fd;	      /* read by pread: its position stays; -1: no chunk */
	uint64_t payload_size;
	/*
	 * So many bytes of the payload are a transaction, the rest is its V1
	 * profile; then event_id is the transaction's. 0: it is a chunk.
	 */
	uint64_t transaction_size;
	/*
	 * A transaction that refers to the chunk, in a file of its own, read as
	 * payload_fd; then event_id is the transaction's. 0: there is none.
	 */
	uint64_t anchor_size;
	int anchor_fd;
	enum compression compression;
};

static inline enum envelope_kind package_kind(const struct package *p)
{
	return p->transaction_size > 0 ? ENVELOPE_V1 : ENVELOPE_CHUNK;
}

/*
 * What a kept envelope may unpack to: a payload of 50 MB, as the server takes,
 * and its headers. A file of some 50 KB can unpack to that of zeros; what goes
 * on is not of ours, and is not unpacked to its end.
 */
#define PACKAGE_UNPACKED_MAX (52u << 20)

/*
 * Writes the envelope as it is to fd, without sent_at. Returns 0 or -errno:
 * of write(2); -EIO if the payload is shorter than it should be; -ENOMEM;
 * -EINVAL if the platform is not UTF-8. After an error fd has a part of it.
 */
must_check int package_write(const struct package *p, int fd);

/*
 * Appends the envelope, compressed, to *ret; the report, if it is not NULL, is
 * its last item. Returns 0, -E2BIG if it does not
 * fit, or an error as above, of pread(2) instead of write(2).
 */
must_check int package_compress(const struct package *p, int64_t sent_at_us,
				const struct reports_item *report, struct buf *ret);

/*
 * Appends the envelope that was kept in the file fd, by package_compress with
 * ENVELOPE_NOT_SENT and gzip, to *ret, as it is to be sent now, compressed in
 * this way; with the report, if it is not NULL. Returns 0, -E2BIG if it does
 * not fit, -EFBIG if it unpacks to more than PACKAGE_UNPACKED_MAX, -EBADMSG if
 * the file is not such an envelope, -ENOMEM, or pread(2)'s error.
 */
must_check int package_stamp(int fd, enum compression how, int64_t sent_at_us,
			     const struct reports_item *report, struct buf *ret);

#endif
