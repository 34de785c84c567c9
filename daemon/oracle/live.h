/*
 * A living process as lib/unwind sees it: its maps and its files, opened
 * directly, with the rights of who runs this. For an operator's tool and for
 * tests; the daemon's processes get both handed in.
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
	int proc_fd; /* of /proc/PID */
	struct unwind_cache *cache;
	struct unwind_space *space; /* files open while it looks at them */
	struct buf maps;	    /* the text that space has taken */
};

/*
 * Opens process pid; its maps are not read yet. Returns 0, -ENOENT or -ESRCH
 * if there is none, or another negative errno. live_fini takes what failed.
 */
must_check int live_init(struct live *l, int32_t pid);
void live_fini(struct live *l);

/*
 * Reads the maps. *ret_changed: they are not those of the last time, so what
 * others keep of them (lib/unwind does not) is out of date. Returns 0, -ESRCH
 * if the process has ended, or another negative errno: the old ones stay.
 */
must_check int live_read_maps(struct live *l, bool *ret_changed);

/* The end of the mapping that addr lies in, by the last maps; 0: in none. */
uint64_t live_mapping_end(const struct live *l, uint64_t addr);

/*
 * The next thread of the process with a greater number than after, 0 for the
 * first. Returns 0 if there is none.
 */
int32_t live_next_thread(const struct live *l, int32_t after);

#endif
