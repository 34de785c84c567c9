/*
 * Which directory of the spool is a DSN's: the first DSN has the spool's own,
 * each other a directory in it, called by its number (proto/dsn.h). A DSN that
 * was the first and is a target's now, or the other way round, has chunks in
 * both: they are brought together.
 *
 * Before the sandbox: landlock lets no file go from one directory to another.
 */
#ifndef DAEMON_SPOOL_PART_H
#define DAEMON_SPOOL_PART_H

#include "daemon/msg.h"

/*
 * The directory of init->spool_dsn, made if it is not there; dir_fd, the
 * spool's, is taken. The DSN's files that lie in the other place are moved
 * there; a ship that has them in its own memory forgets them within a minute
 * (spool_forget_taken). By the first, files that are too old are removed from
 * all others: nobody may be left who would. -1: there is none.
 */
int spool_part_open(int dir_fd, const struct msg_init *init);

#endif
