/*
 * Inspections for sentry-profctl doctor: whether the configuration is right, whether each server
 * takes envelopes, and to which section a process belongs. The daemon's own ships ask the
 * servers (MSG_PROBE), so that certificates, proxy, connection and clock are the same as for
 * chunks. A ship that no process has needed so far is started, and stays.
 *
 * One inspection runs at a time: for an operator (PROTOCOL_CHECK), or in a sentry-profd that
 * does nothing else (--check-config --servers). The findings (daemon/common/finding.h) are
 * written when all answers have arrived or the inspection has timed out.
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
	struct inspection *current; /* NULL: none is running */
};

/*
 * Handles PROTOCOL_CHECK: begins an inspection. The answer has a socket, on which one message
 * will come: struct protocol_checked, with the findings in a sealed memfd.
 */
void inspect_ask(struct inspector *in, const struct control_peer *peer,
		 const struct protocol_request *m, struct control_answer *ret);

/*
 * --check-config --servers: begins an inspection of the options, which writes its findings to
 * stdout. faults: the faults of the options; if one is an error, no server is asked. Returns 0
 * or -errno.
 */
must_check int inspect_options(struct inspector *in, const struct config_faults *faults);

/*
 * To be called at every turn: ends the inspection when all has been answered or the time is
 * over.
 */
void inspect_check(struct inspector *in);

/* Returns true if the inspection of the options has ended. */
bool inspect_is_over(const struct inspector *in);
/* Returns its gravest finding. Call it after inspect_is_over(). */
enum finding inspect_worst(const struct inspector *in);

/* Handles MSG_PROBED of a ship. Returns 0, or -EPROTO if the ship was not asked. */
must_check int inspect_probed(struct ship *s, const struct msg_probed *m);

#endif
