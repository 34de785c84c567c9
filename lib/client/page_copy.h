/*
 * Reads the daemon's page (struct protocol_page, lib/client/protocol.h): makes a consistent copy of
 * the fields that the daemon writes together, and finds out whether the profiler of this process
 * runs.
 */
#ifndef LIB_CLIENT_PAGE_COPY_H
#define LIB_CLIENT_PAGE_COPY_H

#include <stdbool.h>

#include "lib/client/state.h"

struct page_copy {
	struct protocol_page page; /* only the fields from sequence to profiler_id are valid */
	bool is_other_ns;	   /* this process is in another pid namespace than the daemon */
	/* The profiler runs, or will run because of a pending start or an open root span. */
	bool is_running;
};

/*
 * Copies the page to *ret. Calls connection_check_if_due() first, so that the library connects and
 * reconnects also in a program that only reads the page. Returns false if no daemon is connected,
 * the state cannot be allocated, or the daemon was writing the page at each of 100 attempts; then
 * *ret is undefined. Several threads may call this function at the same time, also one that has
 * entered the state (state_enter()).
 */
bool page_copy_read(struct page_copy *ret);

#endif
