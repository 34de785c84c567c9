/*
 * Fetches separate debug files from the debuginfod servers in $DEBUGINFOD_URLS. Used by the
 * symbolizer. libdebuginfod does the work, and keeps the files in a cache of the user.
 *
 * The library is loaded by dlopen(3) at the first use, since it loads libcurl, too.
 */
#ifndef DAEMON_CTL_CONVERT_DEBUGINFOD_H
#define DAEMON_CTL_CONVERT_DEBUGINFOD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct debuginfod {
	void *library;	      /* of dlopen(3); NULL: not loaded */
	void *client;	      /* the library's own state */
	bool is_off;	      /* an error was reported; no server is asked again */
	bool has_progress;    /* the terminal shows a progress line */
	bool is_timed_out;    /* the last fetch got no byte for timeout_ns */
	const char *build_id; /* of the file that is being fetched */
	uint64_t timeout_ns;  /* the longest time without a new byte */
	uint64_t progress_ns; /* when its last bytes arrived (clock_mono_ns) */
	long bytes;	      /* how many of its bytes have arrived */
};

/* Unloads the library and zeroes *d. Safe on a zero-initialised struct. */
void debuginfod_end(struct debuginfod *d);

/*
 * Fetches the debug file of a build-id (hex digits). *d is zeros before the first call, and must
 * not move until debuginfod_end(), because the library keeps its address. If stderr is a terminal,
 * a line shows the progress. The fetch fails if no byte arrives for $DEBUGINFOD_TIMEOUT seconds (1
 * to 3600; otherwise 30).
 *
 * Returns
 * - 0 with a descriptor, which the caller owns;
 * - -ENOENT if no server has the file;
 * - -ENOSYS if $DEBUGINFOD_URLS is not set: nothing is printed;
 * - any other error, such as -ETIMEDOUT, or -ENOSYS if the library is missing. The function prints
 *   a warning, and each later call returns -ENOSYS without asking a server.
 */
must_check int debuginfod_find(struct debuginfod *d, const char *build_id, int *ret_fd);

#endif
