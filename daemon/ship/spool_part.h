/*
 * Which directory of the spool is a DSN's: the first DSN has the spool's own,
 * each other a directory in it, called by its number (proto/dsn.h). A DSN that
 * was the first and is a target's now, or the other way round, has chunks in
 * both: they are brought together.
 *
 * By the first, files that are too old are removed from all others: nobody may
 * be left who would.
 */
#ifndef DAEMON_SHIP_SPOOL_PART_H
#define DAEMON_SHIP_SPOOL_PART_H

#include "daemon/msg/msg.h"
#include "lib/base/util.h"

/* How often the others are looked at. */
#define SPOOL_PARTS_PAUSE_NS (3600 * NS_PER_SEC)

/* All of the spool, who has it; dir_fd -1: it is another's to look at. */
struct spool_parts {
	int dir_fd;
	uint64_t age_ms;  /* of a file, and then it goes */
	uint64_t next_ns; /* not before, by clock_boot_ns */
};

/*
 * Before the sandbox: landlock lets no file go from one directory to another.
 *
 * The directory of init->spool_dsn, made if it is not there; dir_fd, the
 * spool's, is taken. The DSN's files that lie in the other place are moved
 * there; a ship that has them in its own memory forgets them within a minute
 * (spool_forget_taken). Others that are empty, and nobody's, are removed by the
 * first. -1: there is none.
 */
int spool_part_open(int dir_fd, const struct msg_init *init, struct spool_parts *ret);

/* At every turn, in the sandbox, too: what is too old goes. */
void spool_parts_check(struct spool_parts *p);

#endif
