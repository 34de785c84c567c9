/*
 * A client's page (struct protocol_page of lib/client/protocol.h): memory that the broker shares
 * with one client (clients.h). The broker writes the state of profiling, and the client reads it.
 * The client writes spans_open and is_traced, and the broker reads them: whether root spans (of
 * Sentry's tracing) are open in the client's process, and whether the client has ever had one.
 *
 * The client may be malicious. The size of the page is sealed, and a hole that the client
 * punches into the page reads as zeros. So an access by the broker neither faults nor waits for
 * the client.
 */
#ifndef DAEMON_BROKER_CONTROL_CLIENT_PAGE_H
#define DAEMON_BROKER_CONTROL_CLIENT_PAGE_H

#include <stdbool.h>

#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct client_page {
	struct protocol_page *shared;
	/*
	 * What client_page_show() wrote last, in the members before beat. shown.sequence is odd:
	 * the page had this number during the write, and has shown.sequence + 1 since its end. So
	 * the first write makes it 1, and leaves 2 in the page.
	 */
	struct protocol_page shown;
};

/*
 * Makes a page of zeros. *ret_fd: its memfd, which the caller closes. Returns 0; or -errno, and
 * p->shared is NULL.
 */
must_check int client_page_init(struct client_page *p, int *ret_fd);
/* Unmaps the page. p->shared may be NULL. */
void client_page_fini(struct client_page *p);

/*
 * Writes the members of now from state to profiler_id, inclusive, to the page, unless the page has
 * the same values. A client that reads meanwhile finds an odd sequence and reads again.
 */
void client_page_show(struct client_page *p, const struct protocol_page *now);

/* Increments the beat, which shows the client that the daemon runs. */
void client_page_beat(struct client_page *p);
/*
 * Writes how many START and STOP requests of this client are done: carried out, or replaced by a
 * later one while they waited (client_request() in clients.h). Call this function after
 * client_page_show(), so that a client that reads the number finds the effect of these requests in
 * the page.
 */
void client_page_handled(struct client_page *p, uint32_t n_requests);
/*
 * Sets whether the client is to send SPANS_OPEN when a root span opens. After setting true, call
 * client_page_has_open_spans(): a root span that opens at this moment is noticed either by the
 * message or by that function.
 */
void client_page_want(struct client_page *p, bool wants_open);

/* Returns true if the client has set spans_open: sampled root spans are open. */
bool client_page_has_open_spans(const struct client_page *p);
/* Returns true if the client has set is_traced: it has opened a root span, sampled or not. */
bool client_page_had_spans(const struct client_page *p);

#endif
