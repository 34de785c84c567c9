/*
 * What ship keeps on the disk until the server answers: puts chunks there, and
 * gives them back one by one, with a pause in between (lib/ship/pace.h). Says
 * in the log what becomes of them, and counts it for the broker; and those that
 * are lost for the server, but for what is another DSN's: it is no server of
 * theirs.
 */
#ifndef DAEMON_SHIP_SPOOLED_H
#define DAEMON_SHIP_SPOOLED_H

#include <stdbool.h>

#include "daemon/msg/msg_ship.h"
#include "daemon/ship/verdict.h"
#include "lib/base/buf.h"
#include "lib/ship/package.h"
#include "lib/ship/reports.h"
#include "lib/ship/spool.h"
#include "proto/dsn.h"

/* The first waits for so long at most: of hosts that start at once. */
#define SPOOLED_START_MAX_NS (60 * NS_PER_SEC)

struct spooled {
	struct spool *spool; /* NULL: none, and nothing is kept */
	struct reports *reports;
	uint64_t dsn; /* whose are kept, given back, and told of */
	/* By clock_boot_ns. */
	uint64_t next_ns;  /* not before that the next one is given back */
	uint64_t check_ns; /* not before that what is too old is looked for */
	uint64_t keep_ns;  /* the disk took nothing: not before that again */
	bool given;	   /* the one with this id, and not answered yet */
	uint8_t given_id[SPOOL_ID_BYTES];
	enum envelope_kind given_kind;
	bool overflow_told;
	struct spool_counts counts;
	bool counts_changed; /* since the flag was taken back */
};

/* None; spooled_fini takes that, too. What is lost is counted in reports. */
void spooled_init(struct spooled *s, struct reports *reports);

/*
 * Takes the spool in this directory, which stays the caller's, for the DSN of
 * this number, which spooled_set_dsn follows with; a limit of 0 is one of
 * SPOOL_*_DEFAULT (daemon/common/spool_dir.h). Returns 0 or an error of spool_new:
 * then there is none. Its first chunk is due after a while, by chance: hosts
 * that start at the same moment have one, too.
 */
must_check int spooled_open(struct spooled *s, uint64_t dsn, const struct spool_limits *limits,
			    int dir_fd);
void spooled_fini(struct spooled *s);

/* Says what is there for others: no ship of theirs may ever come. */
void spooled_set_dsn(struct spooled *s, const struct dsn *dsn);

/* At every turn: what is too old goes, of whomever it is. */
void spooled_check(struct spooled *s);

bool spooled_has(const struct spooled *s, const char *chunk_id);

/* Puts a chunk there; false if that is not possible now. */
bool spooled_keep(struct spooled *s, const struct package *p, const char *chunk_id);
/* The disk is asked again, even if it took nothing a moment ago. */
void spooled_ask_again(struct spooled *s);

/* When the next of this kind is due; UINT64_MAX: there is none. */
uint64_t spooled_due_ns(const struct spooled *s, enum envelope_kind kind);

/*
 * Appends the oldest of this kind to *ret, as it is to be sent now, in this
 * compression, with the report if it is not NULL; false if there is none.
 * spooled_answered follows.
 */
bool spooled_give(struct spooled *s, enum envelope_kind kind, enum compression compression,
		  const struct reports_item *report, struct buf *ret);
void spooled_answered(struct spooled *s, enum verdict verdict);

/* The server answers: what waits is due. */
void spooled_hurry(struct spooled *s);

#endif
