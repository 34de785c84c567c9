/*
 * Clients: connections of processes that speak for themselves (libsentry_profd,
 * lib/client/protocol.h): their requests, their pages, and the end of their connections. A
 * connection that has ended has no root spans open.
 *
 * A client may connect before its instance is known (discovery, min_age_seconds), and stay
 * connected after its end. So a client keeps its requests, and clients_check connects it with
 * the instance that has its pid and its start time.
 *
 * The broker reads two words of the page, like a message: it takes both as yes or no, and
 * they concern the client's own process only.
 */
#ifndef DAEMON_BROKER_CONTROL_CLIENTS_H
#define DAEMON_BROKER_CONTROL_CLIENTS_H

#include <stdint.h>

#include "daemon/broker/targets/lifecycle.h"
#include "daemon/process/peer.h"
#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct client;
struct instance;
struct targets;

/* Zeros, but for targets, is none. */
struct clients {
	struct targets *targets;
	struct client *first;
	uint64_t beat_ns; /* the last one */
	size_t n_seen;	  /* instances that there were then */
};

/*
 * A connection's process speaks for itself. ret_fd: NULL if it wants no page;
 * else *ret_fd is the page's memfd, the caller's, to be sent and closed.
 * Returns 0, -ESRCH (the process is gone, or not of this pid namespace), or
 * another errno.
 */
must_check int client_new(struct clients *cs, const struct peer *peer, struct client **ret,
			  int *ret_fd);
/*
 * The connection has ended: the process has no root spans open any more.
 * clients_sweep frees c. Takes NULL.
 */
void client_end(struct client *c);

/* At the end of a turn: frees the clients whose connection has ended. */
void clients_sweep(struct clients *cs);

/*
 * START, STOP, PROFILER_ID, SPANS_OPEN, SPANS_CLOSED of the process about
 * itself, or THREAD. Fills in result, pid, state, profiler_id and text of
 * *answer, which is all zeros. A START before there is an instance is
 * PROTOCOL_OK, and done when there is one.
 */
void client_request(struct clients *cs, struct client *c, const struct protocol_request *request,
		    struct protocol_answer *answer);

/*
 * At every turn, before instances_check: what is open, what stands in the
 * pages, and time for lifecycle_time.
 */
void clients_check(struct clients *cs);

/* The instance will be no more. */
void clients_forget(struct clients *cs, const struct instance *i);

/* Of an instance, for an answer: pid, state, and the id if it is profiled. */
void clients_tell(const struct instance *i, struct protocol_answer *ret);

/*
 * Whoever called it, and by whatever way: of a call without effect a line at
 * debug level says why, as the specification has it.
 */
void clients_note(int32_t pid, struct lifecycle_result result);

#endif
