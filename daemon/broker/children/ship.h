/*
 * Ship processes: the files that the broker opens for them, what they are told, and the
 * figures of their spools.
 *
 * A ship may open no file. The broker opens the spool's directory, certificates and keys
 * with the rights of the user who started the daemon, and hands the descriptors over.
 */
#ifndef DAEMON_BROKER_CHILDREN_SHIP_H
#define DAEMON_BROKER_CHILDREN_SHIP_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/broker/children/child.h"

#include "daemon/msg/msg_ship.h"

/* Opens the files that the options name into c->ship_fds; on a fault prints one line. */
must_check int ships_open_files(struct children *c);
/*
 * At a reload: opens certificates and keys again, and hands them to all ships.
 * Where one cannot be opened a line says so, and all stay as they were.
 */
void ships_renew_files(struct children *c);
/* Is the file at this index of c->ship_fds there, and for this ship? */
bool ship_has_file(const struct ship *s, size_t file);

/* The ship has so long until it gives up what the server has not taken. */
void ship_tell_finish(struct ship *s, uint64_t timeout_ns);
/* Tells the ship of lost chunks that it does not know of, if its process runs. */
void ship_tell_lost(struct ship *s);

/* What became of chunks in the spools of all ships, and what is there now. */
void ships_spool(const struct children *c, struct spool_counts *ret);
/* The process has ended: the ship keeps the figures of its spool. */
void ship_died(struct ship *s);
/* The ship is about to be freed: c keeps the figures of its spool. */
void ship_keep_spool(struct children *c, const struct ship *s);

#endif
