/*
 * A client's page (struct protocol_page): the broker writes it and the client reads it, except
 * for two words that the client writes.
 *
 * The page is shared with a process that may be anyone's. Its size is sealed, and a hole that
 * the client punches into it reads as zeros, so that touching the page neither faults nor
 * waits for the client.
 */
#ifndef DAEMON_BROKER_CONTROL_CLIENT_PAGE_H
#define DAEMON_BROKER_CONTROL_CLIENT_PAGE_H

#include <stdbool.h>

#include "lib/base/util.h"
#include "lib/client/protocol.h"

struct client_page {
	struct protocol_page *shared;
	/* What was written, up to profiler_id; its sequence is the odd one. */
	struct protocol_page shown;
};

/* *ret_fd: the memfd, the caller's. Returns 0 or -errno. */
must_check int client_page_init(struct client_page *p, int *ret_fd);
void client_page_fini(struct client_page *p);

/* Shows another state, if it is another. now: up to profiler_id, sequence 0. */
void client_page_show(struct client_page *p, const struct protocol_page *now);

void client_page_beat(struct client_page *p);
/* So many commands have been dealt with: what is shown already is what came of
 * them. */
void client_page_handled(struct client_page *p, uint32_t commands);
/* From now on he says so when a span opens; what is open is read after that. */
void client_page_want(struct client_page *p, bool wants_open);

bool client_page_is_open(const struct client_page *p);
bool client_page_is_traced(const struct client_page *p);

#endif
