/* The daemon's page as it stands, and what follows from it for this process. */
#ifndef LIB_CLIENT_SEEN_H
#define LIB_CLIENT_SEEN_H

#include <stdbool.h>

#include "lib/client/state.h"

struct seen {
	struct protocol_page page; /* up to profiler_id */
	bool is_other_ns;
	/* The profiler runs, or is about to by what was asked or is open. */
	bool is_running;
};

/*
 * Looks for the daemon where that is due: a program may ask and do nothing
 * else. False if there is none, or it does not come to an end writing.
 */
bool seen_read(struct seen *ret);

#endif
