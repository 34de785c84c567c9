/*
 * Inspections for sentry-profctl doctor: whether the configuration is right, whether each server
 * takes envelopes, and which section matches a process. The daemon's own ships ask the servers
 * (MSG_PROBE), so that certificates, proxy, connection and clock are the same as for chunks. If a
 * configured DSN has no ship yet, because no run of the profiler has needed one, the inspection
 * starts a ship. That ship ends a minute after the last inspection, unless a run needs it by then
 * (deadlines.h).
 *
 * An inspection runs for an operator (PROTOCOL_CHECK), or in a sentry-profd that does nothing else
 * (--check-config --servers). There is one inspection at a time. The inspection writes its findings
 * (daemon/common/finding.h) when all servers have answered and the process was read, or after 90 s.
 * A server that has not answered by then is a fault in the findings. The process is the one that
 * doctor names, or that of the first --pid. If none is named, the findings say nothing of sections.
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
struct modules;
struct ship;

/* The caller sets modules, and current to NULL. */
struct inspector {
	struct modules *modules;
	struct inspection *current; /* NULL: none is running */
};

/*
 * Handles PROTOCOL_CHECK: begins an inspection. It checks the configuration files as the next start
 * would read them, but the servers and sections of the present configuration. The answer has a
 * socket, on which the broker later sends one message: struct protocol_checked, with the findings
 * in a sealed memfd. m->pid is the process that doctor names; 0: none. The answer is
 * PROTOCOL_DENIED if the peer is no operator, PROTOCOL_BUSY if an inspection is running, and
 * PROTOCOL_FAILED after another error.
 */
void inspect_request(struct inspector *in, const struct control_peer *peer,
		     const struct protocol_request *m, struct control_answer *ret);

/*
 * Begins an inspection of the options (--check-config --servers), which writes its findings to
 * stdout. faults: the faults of the options, which are written before this function returns. If
 * one of them is an error, no server is asked, and the next inspect_check() ends the inspection.
 * Returns 0 or -ENOMEM.
 */
must_check int inspect_options(struct inspector *in, const struct config_faults *faults);

/*
 * To be called at every turn: when all servers have answered and the process was read, or when the
 * 90 s are over, writes the findings and ends the inspection.
 */
void inspect_check(struct inspector *in);

/*
 * Returns true if the inspection of inspect_options() has ended. Call it after inspect_options()
 * has succeeded.
 */
bool inspect_is_over(const struct inspector *in);
/* Returns the grade of the gravest finding of inspect_options(). Call it if inspect_is_over(). */
enum finding_grade inspect_worst(const struct inspector *in);

/*
 * Handles MSG_PROBED: stores the answer of the server in s. Returns 0; or -EPROTO if the broker has
 * not asked the ship, or the message breaks a rule.
 */
must_check int inspect_probed(struct ship *s, const struct msg_probed *m);

#endif
