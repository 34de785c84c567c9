/*
 * The spooler keeps envelopes on disk, in the spool (lib/ship/spool.h). While the server does not
 * answer, outbox.c puts envelopes there. When the server answers again, outbox.c gets them back one
 * at a time, with a pause after each (lib/ship/retry.h).
 *
 * Every envelope that leaves the spool is counted in spooler.counts, for the broker. A lost
 * envelope is also counted in spooler.reports, for the client report, with two exceptions: an
 * envelope of another DSN, since the report goes to this ship's server; and an envelope that the
 * server answered with 429, since the server itself has counted it.
 *
 * Times are by clock_boot_ns(). Without a spool most functions do nothing: spooler_put() and
 * spooler_has() return false, spooler_due_ns() returns UINT64_MAX. Call spooler_get() and
 * spooler_handle_outcome() only with a spool.
 */
#ifndef DAEMON_SHIP_SPOOLER_H
#define DAEMON_SHIP_SPOOLER_H

#include <stdbool.h>

#include "daemon/msg/msg_ship.h"
#include "daemon/ship/destination.h"
#include "daemon/ship/queue.h"
#include "lib/base/buf.h"
#include "lib/ship/reports.h"
#include "lib/ship/spool.h"
#include "proto/dsn.h"

/*
 * The longest wait from spooler_open() to the first envelope that is sent. The wait is random, so
 * that hosts that start at the same moment do not send at the same moment.
 */
#define SPOOLER_START_MAX_NS (60 * NS_PER_SEC)

struct spooler {
	struct spool *spool; /* NULL: there is none */
	struct reports *reports;
	uint64_t dsn;	   /* dsn_hash() of the DSN whose envelopes this ship stores and sends */
	uint64_t next_ns;  /* when the next envelope may be sent */
	uint64_t check_ns; /* when to look for envelopes that are too old */
	/* State of the disk. While it refuses envelopes, they wait in memory. */
	/* errno of the last try to write; ENOTEMPTY: see spool_add(); 0: the disk works */
	int disk_error;
	size_t disk_size;	/* bytes of the last envelope that spooler_put() tried to write */
	uint64_t disk_retry_ns; /* when the disk is tried again */
	/* The envelope of the last spooler_get(); valid if sending. */
	bool sending;
	uint8_t sending_id[SPOOL_ID_BYTES];
	enum envelope_kind sending_kind;
	uint64_t held_ns;  /* when an envelope that was held back twice may be sent */
	uint64_t failures; /* requests in a row with an envelope of the spool, and no answer */
	/*
	 * The envelope of the last spooler_get() was not the oldest one, whose id is overtaken_id:
	 * spooler_get() says why. overtaken_id is valid if overtakes is true.
	 */
	bool overtakes;
	uint8_t overtaken_id[SPOOL_ID_BYTES];
	bool warned_overflow; /* "the spool is full" was logged since the server last answered */
	struct spool_counts counts;
	bool changed; /* counts or disk_error have changed; the caller resets it */
};

/*
 * Initialises a spooler without a spool. reports, in which lost envelopes are counted, must outlive
 * the spooler.
 */
void spooler_init(struct spooler *s, struct reports *reports);

/*
 * Opens the spool in the directory dir_fd, which stays the caller's and open until spooler_fini().
 * dsn is the dsn_hash() of this ship's DSN; the caller later passes the DSN itself to
 * spooler_set_dsn(). A limit of 0 stands for the default (SPOOL_*_DEFAULT in
 * daemon/common/spool_dir.h). Returns 0, or an error of spool_new(): then there is no spool.
 */
must_check int spooler_open(struct spooler *s, uint64_t dsn, const struct spool_limits *limits,
			    int dir_fd);
/* Closes the spool, if there is one. The files stay. */
void spooler_fini(struct spooler *s);

/* Sets the DSN. Logs the number of envelopes in the spool that are for other DSNs. */
void spooler_set_dsn(struct spooler *s, const struct dsn *dsn);

/*
 * Once a minute, removes envelopes of all DSNs that are too old. After a failed spooler_put(),
 * tests every 10 s whether the disk can be written again. Call it at each turn of the loop.
 */
void spooler_check(struct spooler *s);

/* Returns true if an envelope with this chunk id (32 hexadecimal digits) is in the spool. */
bool spooler_has(const struct spooler *s, const char *chunk_id);

/*
 * Writes the envelope to the spool; the item stays the caller's. If the spool is full, its oldest
 * envelopes are removed first. If the spool has an envelope with the item's chunk id, returns true
 * without writing. Returns false if there is no spool, or if writing fails. Within 10 s after a
 * failure the function returns false without a try.
 *
 * An envelope that does not fit into the spool is no failure of the disk: the function logs it,
 * sets item->is_too_large and returns false, then and whenever it gets the item again.
 */
bool spooler_put(struct spooler *s, struct queue_item *item);
/* Makes the next spooler_put() try to write, even within 10 s after a failure. */
void spooler_retry_disk(struct spooler *s);

/* Returns when the next envelope of this kind may be sent; UINT64_MAX: the spool has none. */
uint64_t spooler_due_ns(const struct spooler *s, enum envelope_kind kind);

/*
 * Makes the body of a request from the oldest envelope of this kind (exception below): compresses
 * it, with the present time as sent_at and with the report, which may be NULL, into the empty
 * buffer *ret. Sets aside an envelope that cannot be read (lib/ship/spool.h), and takes the next
 * one. Returns false, with *ret empty, if no envelope is left, or if memory or descriptors are
 * short (then the next envelope is due in 1 s). After true the caller passes the outcome of the
 * request to spooler_handle_outcome().
 *
 * One envelope may get no answer although the server answers others: it takes too long over a slow
 * connection, or a firewall resets the connection at its contents. So after three requests in a row
 * without an answer every second one has another envelope. If the server answers that one, the
 * oldest envelope is held back (spool_hold_back): it is sent when no other is left, and after
 * another failure once in RETRY_MAX_NS.
 */
bool spooler_get(struct spooler *s, enum envelope_kind kind, enum compression compression,
		 const struct reports_item *report, struct buf *ret);
/*
 * Removes the envelope of the last spooler_get(). After OUTCOME_NO_ANSWER and OUTCOME_DENIED the
 * envelope stays, for a later spooler_get(). In each case the next envelope is due after a pause
 * (retry_pause_ns() in lib/ship/retry.h).
 */
void spooler_handle_outcome(struct spooler *s, enum outcome outcome);

/*
 * Records that the server has answered a request, but not by a denial. If the next envelope is due
 * later than a pause from now, it becomes due after that pause.
 */
void spooler_server_answers(struct spooler *s);

#endif
