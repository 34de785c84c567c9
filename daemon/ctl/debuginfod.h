/*
 * Separate debug files from debuginfod servers, by libdebuginfod, which keeps
 * what it got in a cache of the user's. The library is loaded when it is first
 * needed: it brings libcurl along. Where DEBUGINFOD_URLS is not set no server
 * is asked.
 */
#ifndef DAEMON_CTL_DEBUGINFOD_H
#define DAEMON_CTL_DEBUGINFOD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct debuginfod {
	void *library; /* NULL: not loaded */
	void *client;
	bool is_off; /* after an error, which was told */
	bool shows;  /* a line of progress stands on the terminal */
	bool is_late;
	/* Of the file that is being fetched. */
	const char *build_id;
	uint64_t timeout_ns, moved_ns;
	long bytes;
};

/* For a struct of zeros, too; it is one again. */
void debuginfod_end(struct debuginfod *d);

/*
 * Fetches the debug file of this build-id, in hex. On a terminal a line of
 * standard error shows how far it is. A server from which no byte comes for 30
 * s (or $DEBUGINFOD_TIMEOUT) is given up. Returns 0 and a descriptor, or a
 * negative errno: -ENOENT if no server has the file, -ENOSYS if none is asked.
 */
must_check int debuginfod_find(struct debuginfod *d, const char *build_id, int *ret_fd);

#endif
