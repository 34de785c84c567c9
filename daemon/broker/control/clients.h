/*
 * Clients: connections of processes that control their own profile (libsentry_profd,
 * lib/client/protocol.h). This module handles their requests, their pages (client_page.h) and the
 * end of their connections. When a connection ends, the root spans that its process reported count
 * as closed.
 *
 * A process may connect before discovery has made an instance of it (targets/instance.h), and the
 * connection may outlive the instance. So a client can be without an instance. When there is an
 * instance with the client's pid and start time, clients_check() assigns it to the client, a second
 * later at most. An instance that exists for recordings only (INSTANCE_RECORDED) is not assigned.
 * START and STOP requests wait until the client has an instance.
 *
 * The broker reads two words of a client's page, spans_open and is_traced. They are as untrusted as
 * a message: each counts as yes or no, and concerns the client's own process only.
 *
 * A connection stops speaking for its process (peer_speaks()) when the process executes a program
 * with more rights, for example. From then on the broker denies the client's requests, assigns no
 * instance to the client, does not read its page, and shows no state in the page.
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

/* All clients. If all members except targets are zero, there is no client. */
struct clients {
	struct targets *targets;
	struct client *first; /* the newest */
	uint64_t beat_ns;     /* when the pages' beats were last incremented, by clock_mono_ns() */
	size_t n_seen;	      /* targets->n_instances at the last clients_check() */
};

/*
 * Makes a client for the process of a connection, and calls clients_check(). ret_fd: NULL if the
 * client wants no page; otherwise *ret_fd is the page's memfd, which the caller sends and closes.
 * The client belongs to cs; the caller calls client_end() when the connection ends. Returns 0;
 * -ESRCH if the process has ended or has no pid in the broker's pid namespace; -EPERM if the
 * connection does not speak for the process; -ENOMEM; or an error of client_page_init().
 */
must_check int client_new(struct clients *cs, const struct peer *peer, struct client **ret,
			  int *ret_fd);
/*
 * Handles the end of the connection: the client's root spans count as closed, and clients_sweep()
 * frees c. c may be NULL.
 */
void client_end(struct client *c);

/* To be called at the end of a turn: frees the clients whose connection has ended. */
void clients_sweep(struct clients *cs);

/*
 * Handles a request of a process about itself: START, STOP, PROFILER_ID, SPANS_OPEN, SPANS_CLOSED
 * or THREAD. The caller passes *answer with zeros; the function sets result, pid, state,
 * profiler_id and text. For THREAD, pid is the id of the thread, by namespaced_tid_find().
 *
 * If the client has no instance, the answer to START and STOP is PROTOCOL_OK, and the request waits
 * until the client gets its instance. A START or STOP that comes meanwhile replaces the one that
 * waits.
 *
 * Other results: PROTOCOL_DENIED if the connection does not speak for the process;
 * PROTOCOL_NO_PROCESS if there is no such thread; those of lifecycle_start() and lifecycle_stop().
 *
 * Returns the work of the request, for user_quota_use().
 */
uint32_t client_request(struct clients *cs, struct client *c,
			const struct protocol_request *request, struct protocol_answer *answer);

/*
 * To be called at every turn, before instances_check(), which starts the runs that clients want:
 * assigns instances to clients, reads from the pages whether root spans are open, and updates the
 * pages. Once a second this function also increments the beat in each page, by which the client
 * sees that the daemon runs; checks whether each connection still speaks for its process
 * (peer_speaks()); and calls lifecycle_check() for each instance.
 */
void clients_check(struct clients *cs);

/* Call it before i is freed: the clients of i have no instance from then on. */
void clients_forget(struct clients *cs, const struct instance *i);

/*
 * Fills in pid and state (lifecycle_state) of an answer about i, and the profiler id if i is
 * profiled. If the state is PROTOCOL_STATE_LEFT_OUT or PROTOCOL_STATE_WAITING, also sets the text
 * to the reason, unless *ret has a text already.
 */
void clients_answer(const struct instance *i, struct protocol_answer *ret);

/*
 * Logs at debug level why a start, a stop or a root span had no effect on process pid, as the
 * specification of targets/lifecycle.h asks for. Logs nothing if result.answer is PROTOCOL_OK.
 * Also used for the requests of sentry-profctl start and stop.
 */
void clients_log_result(int32_t pid, struct lifecycle_result result);

#endif
