/*
 * Does the server take what we send? One request, for sentry-profctl doctor.
 * Runs in ship, which is what will send the chunks: with its certificates, its
 * environment and its sandbox.
 */
#ifndef DAEMON_PROBE_H
#define DAEMON_PROBE_H

#include "daemon/msg.h"
#include "lib/ship/transport.h"

/*
 * Posts an envelope of a client report that nothing was lost: the server
 * checks the key, and nothing of it is shown or counted. Waits for the answer.
 * Returns 0 and what came of it, or -errno: it could not be asked.
 */
must_check int probe(struct transport *transport, const struct dsn *dsn,
		     enum compression compression, struct msg_probed *ret);

#endif
