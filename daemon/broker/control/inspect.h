/*
 * Inspections for sentry-profctl doctor: is the configuration right, does each server take
 * envelopes, and to which section does a process belong? The daemon's own ships ask the
 * servers (MSG_PROBE), so that certificates, proxy, connection and clock are the same as for
 * chunks. A ship that no process has needed yet is started, and stays.
 *
 * One inspection goes on at a time: for an operator (PROTOCOL_CHECK), or of a sentry-profd that
 * does nothing else (--check-config --servers). Its findings (daemon/common/finding.h) are
 * written when all answers are there, or when the inspection has timed out.
 */
#ifndef DAEMON_BROKER_CONTROL_INSPECT_H
#define DAEMON_BROKER_CONTROL_INSPECT_H

#include "daemon/broker/control/control.h"
#include "daemon/common/finding.h"
#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/process/peer.h"

struct inspection;
struct parts;
struct ship;

struct inspector {
	struct parts *parts;
	struct inspection *current; /* NULL: none goes on */
};

/*
 * The request PROTOCOL_CHECK: begins an inspection. The answer has a socket, on
 * which one message comes: struct protocol_checked, with the lines in a sealed
 * memfd.
 */
void inspect_ask(struct inspector *in, const struct control_peer *peer,
		 const struct protocol_request *m, struct control_answer *ret);

/*
 * --check-config --servers: begins an inspection of the options, and writes its
 * findings to stdout. faults: all that is wrong with the options; if there is an
 * error among them no server is asked.
 */
must_check int inspect_options(struct inspector *in, const struct config_faults *faults);

/* At every turn: ends the inspection when all has been answered. */
void inspect_check(struct inspector *in);

/* Has the inspection of options ended? Then: its gravest finding. */
bool inspect_is_over(const struct inspector *in);
enum finding inspect_worst(const struct inspector *in);

/* MSG_PROBED. Returns 0, or -EPROTO: ship was not asked. */
must_check int inspect_probed(struct ship *s, const struct msg_probed *m);

#endif
