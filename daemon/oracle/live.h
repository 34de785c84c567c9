/*
 * The address space of a running process, for lib/unwind. Reads /proc/PID/maps and opens the mapped
 * files in this process. Used by sentry-profd-oracle and by tests. The daemon does not use this
 * module: its unwind processes get maps and files as descriptors.
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
	struct buf maps; /* the text of /proc/PID/maps, as read last */
};

/*
 * Opens process pid, without reading its maps. *l must not move until live_fini(), because l->space
 * has a pointer to *l. Returns 0; -ENOENT or -ESRCH if the process does not exist; or another
 * -errno. The caller calls live_fini() in all cases.
 */
must_check int live_init(struct live *l, int32_t pid);
void live_fini(struct live *l);

/*
 * Reads the maps and updates l->space. Sets *ret_changed to true if the maps differ from those read
 * before, and at the first call. The caller then drops what it has derived from the old maps
 * (oracle_forget()). Returns 0; -ESRCH if the process has exited; or another -errno. After an error
 * the old maps stay.
 */
must_check int live_read_maps(struct live *l, bool *ret_changed);

/*
 * Returns the end of the mapping that contains addr, by the maps that live_read_maps() has read
 * last; 0: no mapping contains addr.
 */
uint64_t live_mapping_end(const struct live *l, uint64_t addr);

/*
 * Lists the threads of the process: returns the smallest tid that is larger than previous, or 0
 * if there is none. previous is 0 for the first thread.
 */
int32_t live_next_thread(const struct live *l, int32_t previous);

#endif
