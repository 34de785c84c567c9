/*
 * Clients: connections of processes that control their own profile (libsentry_profd,
 * lib/client/protocol.h). This module handles their requests, their pages and the end of their
 * connections. A connection that has ended has no open root spans.
 *
 * A client may connect before its instance is known (discovery, min_age_seconds), and stay
 * connected after the instance has ended. Therefore a client keeps its requests, and
 * clients_check() connects it to the instance with its pid and start time.
 *
 * The broker reads two words of the page. Like a message, they are untrusted: each is taken as
 * yes or no, and concerns the client's own process only.
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

/* Zero-initialised, except for targets, it has no clients. */
struct clients {
	struct targets *targets;
	struct client *first;
	uint64_t beat_ns; /* when the pages were last given a beat */
	size_t n_seen;	  /* instances at the last clients_check() */
};

/*
 * Makes a client for the process of a connection. ret_fd: NULL if the client wants no page; else
 * *ret_fd is the page's memfd, which the caller sends and closes. Returns 0; -ESRCH if the
 * process has ended or is of another pid namespace; or another negative errno.
 */
must_check int client_new(struct clients *cs, const struct peer *peer, struct client **ret,
			  int *ret_fd);
/* The connection has ended: the client's root spans end. clients_sweep() frees c. c may be NULL. */
void client_end(struct client *c);

/* To be called at the end of a turn: frees the clients whose connection has ended. */
void clients_sweep(struct clients *cs);

/*
 * Handles a request of a process about itself: START, STOP, PROFILER_ID, SPANS_OPEN,
 * SPANS_CLOSED or THREAD. *answer is all zeros; result, pid, state, profiler_id and text are
 * filled in. A START or STOP before the instance is known is answered PROTOCOL_OK, and carried
 * out when the instance is known.
 */
void client_request(struct clients *cs, struct client *c, const struct protocol_request *request,
		    struct protocol_answer *answer);

/*
 * To be called at every turn, before instances_check(): reads which spans are open, updates the
 * pages, and calls lifecycle_time() once a second.
 */
void clients_check(struct clients *cs);

/* The instance is about to be freed: its clients have none from now on. */
void clients_forget(struct clients *cs, const struct instance *i);

/* Fills in pid and state of an answer, and the profiler id if the instance is profiled. */
void clients_tell(const struct instance *i, struct protocol_answer *ret);

/*
 * Logs at debug level why a call had no effect, as the specification asks for. For calls by any
 * client.
 */
void clients_note(int32_t pid, struct lifecycle_result result);

#endif
