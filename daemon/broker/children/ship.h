/*
 * Ship processes: the files that the broker opens for them, messages to them, and the statistics
 * of their spools.
 *
 * The account of the ships may have no access to the spool's directory, certificates and keys.
 * The broker opens these with the rights of the user who started the daemon, and sends the
 * descriptors to the ships.
 */
#ifndef DAEMON_BROKER_CHILDREN_SHIP_H
#define DAEMON_BROKER_CHILDREN_SHIP_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/broker/children/child.h"

#include "daemon/msg/msg_ship.h"

/*
 * Opens the files that the options name into c->ship_fds, which the caller has set to -1. Opens no
 * spool unless c->has_dsn is set. Returns 0; or -errno, with one log line. After these faults it
 * returns 0, the descriptor stays -1, and the ships work without the file:
 * - Another sentry-profd uses the spool, or the default spool cannot be opened (DEGRADED_SPOOL).
 * - An environment variable names the file of CA certificates, and this file cannot be opened.
 */
must_check int ship_open_files(struct children *c);
/*
 * For a reload: opens the certificates and keys again and sends them to the ships. If one file
 * cannot be opened, logs a line, and all ships keep the files that they have.
 */
void ship_renew_files(struct children *c);
/*
 * Returns true if the process of the ship gets a descriptor of this file at its start: the file is
 * open and, for the ship of Spotlight, is INIT_CA_CERTS. file: an enum init_file.
 */
bool ship_has_file(const struct ship *s, size_t file);

/*
 * Tells the ship to send its chunks within timeout_ns from now. At the end of that time the ship
 * puts the chunks that the server has not taken into the spool, or drops them if it has no spool.
 * The process goes on until its socket is closed or shut down. A second call can only shorten the
 * time.
 */
void ship_ask_to_finish(struct ship *s, uint64_t timeout_ns);
/*
 * Sends s->unreported, the losses that the ship's process does not know, and sets it to zeros. Does
 * nothing while the socket to the process is closed: the losses stay for the next call.
 */
void ship_report_lost(struct ship *s);

/*
 * Sums the spool statistics of all ships: what became of spooled chunks since the broker started,
 * and what the spools hold now.
 */
void ship_sum_spool(const struct children *c, struct spool_counts *ret);
/*
 * Call it when the ship's process has ended: moves the outcomes of spooled chunks from s->spool_now
 * to s->spool_past. What the spool holds (count, bytes) stays in spool_now. Also resets
 * probe_awaited and spool_error.
 */
void ship_died(struct ship *s);
/* Call it before s is freed: adds what became of its spooled chunks to c->spool_gone. */
void ship_add_gone(struct children *c, const struct ship *s);

#endif
