/*
 * The address space of a running process for lib/unwind: reads /proc/PID/maps and opens the
 * mapped files itself, with the rights of this process. Used by sentry-profd-oracle and by
 * tests. The daemon does not use it: its unwind process gets maps and files as descriptors.
 */
#ifndef DAEMON_ORACLE_LIVE_H
#define DAEMON_ORACLE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"
#include "lib/unwind/unwind.h"

struct live {
	int32_t pid;
	int proc_fd; /* the directory /proc/PID */
	struct unwind_cache *cache;
	struct unwind_space *space;
	struct buf maps; /* the text of maps that space has */
};

/*
 * Opens process pid, without reading its maps. Returns 0, -ENOENT or -ESRCH if it does not
 * exist, or another -errno. Call live_fini() in all cases.
 */
must_check int live_init(struct live *l, int32_t pid);
void live_fini(struct live *l);

/*
 * Reads the maps. *ret_changed tells whether they differ from those read before: then the
 * caller has to drop what it keeps of the old ones; l->space is up to date. Returns 0,
 * -ESRCH if the process has exited, or another -errno; after an error the old maps stay.
 */
must_check int live_read_maps(struct live *l, bool *ret_changed);

/* Returns the end of the mapping that addr lies in, by the maps read last; 0: none. */
uint64_t live_mapping_end(const struct live *l, uint64_t addr);

/*
 * Lists the threads of the process: returns the smallest tid that is larger than previous, or 0
 * if there is none. previous is 0 for the first thread.
 */
int32_t live_next_thread(const struct live *l, int32_t previous);

#endif
