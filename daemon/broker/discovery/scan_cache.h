/*
 * What one reading of /proc remembers of processes for the next one, where
 * nobody tells of changes: a few bytes each, as long as they live.
 */
#ifndef DAEMON_BROKER_DISCOVERY_SCAN_CACHE_H
#define DAEMON_BROKER_DISCOVERY_SCAN_CACHE_H

#include <stdint.h>

#include "lib/base/table.h"

struct scan_cache {
	struct table seen, seeing; /* by the last reading, and by this one */
};

enum scan_cache_change {
	SCAN_CACHE_SAME,
	SCAN_CACHE_NEW,	    /* it was not there */
	SCAN_CACHE_PROGRAM, /* another program, or process, than was there */
	SCAN_CACHE_USER,    /* the same, of another user */
};

void scan_cache_init(struct scan_cache *m);
/* Takes one of zeros, too. */
void scan_cache_fini(struct scan_cache *m);

/* No user is asked for: then nobody has changed his. */
#define SCAN_CACHE_NO_USER UINT32_MAX

/*
 * A process as it is now: mark is struct process_identity's. Without memory it is
 * new each time.
 */
enum scan_cache_change scan_cache_compare(struct scan_cache *m, int32_t pid, uint32_t mark,
					  uint32_t uid);

/* The reading has ended: who was not in it is forgotten. */
void scan_cache_turn(struct scan_cache *m);

/* All are new to the next reading. */
void scan_cache_forget(struct scan_cache *m);

#endif
