/*
 * Fetches separate debug files from debuginfod servers by libdebuginfod, which keeps them
 * in a cache of the user. Used by the symbolizer if $DEBUGINFOD_URLS is set.
 *
 * The library is loaded (dlopen) at the first use, since it loads libcurl.
 */
#ifndef DAEMON_CTL_CONVERT_DEBUGINFOD_H
#define DAEMON_CTL_CONVERT_DEBUGINFOD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct debuginfod {
	void *library; /* NULL: not loaded */
	void *client;
	bool is_off;	   /* an error was reported; no server is asked again */
	bool has_progress; /* the terminal shows a progress line */
	bool is_timed_out;
	/* The file that is being fetched: */
	const char *build_id;
	uint64_t timeout_ns;
	uint64_t progress_ns; /* when the last bytes arrived (clock_mono_ns) */
	long bytes;
};

/* Unloads the library and zeroes *d. Safe on a zero-initialised struct. */
void debuginfod_end(struct debuginfod *d);

/*
 * Fetches the debug file of a build-id (hex digits). *d is zeros before the first call. On
 * a terminal, a line on stderr shows the progress. The fetch fails if no byte arrives for
 * 30 s, or $DEBUGINFOD_TIMEOUT seconds. Returns 0 with a descriptor; -ENOENT if no server
 * has the file; -ENOSYS if no server is asked; or another -errno. After an error other than
 * -ENOENT a warning is printed and further calls return -ENOSYS.
 */
must_check int debuginfod_find(struct debuginfod *d, const char *build_id, int *ret_fd);

#endif
