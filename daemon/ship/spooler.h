/*
 * Uses the spool (lib/ship/spool.h) for ship: outbox.c puts envelopes there while the server does
 * not answer, and gets them back one at a time, with pauses in between (lib/ship/retry.h), once
 * the server answers.
 *
 * Every envelope that leaves the spool is counted for the broker (counts), and logged. A lost
 * envelope of this ship's DSN is also counted for the client report (reports). A lost envelope of
 * another DSN is not, since the report goes to this ship's server.
 *
 * Times are by clock_boot_ns(). Without a spool every function does nothing, and spooler_put()
 * returns false.
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
 * The longest wait before the first envelope. The wait is random, so that hosts that start at the
 * same moment do not send at the same moment.
 */
#define SPOOLER_START_MAX_NS (60 * NS_PER_SEC)

struct spooler {
	struct spool *spool; /* NULL: there is none */
	struct reports *reports;
	uint64_t dsn;	   /* dsn_hash() of the DSN whose envelopes this ship stores and sends */
	uint64_t next_ns;  /* when the next envelope may be sent */
	uint64_t check_ns; /* when to look for envelopes that are too old */
	/*
	 * While the disk refuses envelopes, chunks wait in memory. Why the last one could not be
	 * written (an errno; 0: the disk works), its size, and when the disk is tried again.
	 */
	int disk_error;
	size_t disk_size;
	uint64_t disk_retry_ns;
	/* The envelope that is being sent. */
	bool sending;
	uint8_t sending_id[SPOOL_ID_BYTES];
	enum envelope_kind sending_kind;
	bool warned_overflow;
	struct spool_counts counts;
	bool changed; /* counts or disk_error; set by this module, reset by the caller */
};

/* Initialises a spooler without a spool. It counts lost envelopes in reports. */
void spooler_init(struct spooler *s, struct reports *reports);

/*
 * Opens the spool in a directory, which stays the caller's, for the DSN with this dsn_hash(); call
 * spooler_set_dsn() with that DSN next. A limit of 0 stands for the default (SPOOL_*_DEFAULT in
 * daemon/common/spool_dir.h). Returns 0, or an error of spool_new(): then there is no spool.
 */
must_check int spooler_open(struct spooler *s, uint64_t dsn, const struct spool_limits *limits,
			    int dir_fd);
/* Closes the spool, if there is one. */
void spooler_fini(struct spooler *s);

/* Sets the DSN. Logs the number of envelopes in the spool that are for other DSNs. */
void spooler_set_dsn(struct spooler *s, const struct dsn *dsn);

/*
 * Removes envelopes that are too old, of all DSNs, and tries a disk that has failed. Call it at
 * each turn of the loop.
 */
void spooler_check(struct spooler *s);

/* Returns true if the chunk is in the spool. */
bool spooler_has(const struct spooler *s, const char *chunk_id);

/*
 * Writes the envelope to the spool; the item stays the caller's. If the spool is full, its oldest
 * envelopes are removed first. Returns false if there is no spool, or if writing failed, now or in
 * the last 10 s.
 */
bool spooler_put(struct spooler *s, const struct queue_item *item);
/* Makes the next spooler_put() write, even shortly after an error. */
void spooler_retry_disk(struct spooler *s);

/* Returns the time at which the next envelope of this kind may be sent; UINT64_MAX: there is none.
 */
uint64_t spooler_due_ns(const struct spooler *s, enum envelope_kind kind);

/*
 * Appends the oldest envelope of this kind to *ret, compressed and with the current sent_at, and
 * with the report unless that is NULL. Returns false if there is none or memory is short. After
 * true pass the outcome of the request to spooler_handle_outcome().
 */
bool spooler_get(struct spooler *s, enum envelope_kind kind, enum compression compression,
		 const struct reports_item *report, struct buf *ret);
/*
 * Removes the envelope of the last spooler_get(); after OUTCOME_NO_ANSWER and OUTCOME_DENIED the
 * envelope stays, and spooler_get() returns it again. Sets the time of the next envelope
 * (spooler_due_ns()).
 */
void spooler_handle_outcome(struct spooler *s, enum outcome outcome);

/* Call this when the server answers: shortens the wait for the next envelope to one pause. */
void spooler_server_answers(struct spooler *s);

#endif
