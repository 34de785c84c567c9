/*
 * A client's page (struct protocol_page): memory that the broker shares with one client. The
 * broker writes the state of profiling, and the client reads it. The client writes
 * spans_open and is_traced, which the broker reads.
 *
 * The client may be malicious. The size of the page is sealed, and a hole that the client
 * punches into it reads as zeros, so that an access by the broker neither faults nor waits for
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
	 * The state that client_page_show() wrote last: the members before beat are valid.
	 * shown.sequence is the odd number that the page had during that write.
	 */
	struct protocol_page shown;
};

/* Makes a page of zeros. *ret_fd: its memfd, which the caller closes. Returns 0 or -errno. */
must_check int client_page_init(struct client_page *p, int *ret_fd);
/* Unmaps the page. */
void client_page_fini(struct client_page *p);

/*
 * Writes the state to the page if it has changed. Reads the members of now from state to
 * profiler_id, inclusive.
 */
void client_page_show(struct client_page *p, const struct protocol_page *now);

/* Increments the beat, which shows the client that the daemon runs. */
void client_page_beat(struct client_page *p);
/*
 * Writes how many commands were handled. Call it after client_page_show(), so that a client that
 * reads the number finds their effect in the page.
 */
void client_page_handled(struct client_page *p, uint32_t commands);
/*
 * Asks the client to send a message when a span opens (wants_open). The caller reads
 * client_page_has_open_spans() after this call, so that a span that opens at this moment is noticed
 * by the message or by that function.
 */
void client_page_want(struct client_page *p, bool wants_open);

/* Returns true while, by the client's page, sampled root spans are open. */
bool client_page_has_open_spans(const struct client_page *p);
/* Returns true if the client has ever opened a root span, sampled or not. */
bool client_page_had_spans(const struct client_page *p);

#endif
