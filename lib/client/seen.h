/*
 * A consistent copy of the daemon's page (lib/client/protocol.h), and what follows from it for this
 * process.
 */
#ifndef LIB_CLIENT_SEEN_H
#define LIB_CLIENT_SEEN_H

#include <stdbool.h>

#include "lib/client/state.h"

struct seen {
	struct protocol_page page; /* only the fields from sequence to profiler_id are valid */
	bool is_other_ns;
	/* The profiler runs, or will run because of a pending start or an open root span. */
	bool is_running;
};

/*
 * Copies the page to *ret. Checks the connection first if that is due, because a program may call
 * nothing but functions that read the page. Returns false if there is no daemon, or if the daemon
 * wrote the page during all attempts to read it; then *ret is undefined.
 */
bool seen_read(struct seen *ret);

#endif
