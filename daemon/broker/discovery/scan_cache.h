/*
 * Scan cache: what the previous scan of /proc saw of each process, so that the next scan finds new
 * and changed processes. Used where the proc connector is unavailable. A scan calls
 * scan_cache_compare() for each process and scan_cache_end_scan() at its end. The cache takes some
 * bytes for each process on the machine.
 */
#ifndef DAEMON_BROKER_DISCOVERY_SCAN_CACHE_H
#define DAEMON_BROKER_DISCOVERY_SCAN_CACHE_H

#include <stdint.h>

#include "lib/base/table.h"

struct scan_cache {
	struct table seen, seeing; /* what the last scan saw, and what the present one has seen */
};

enum scan_cache_change {
	SCAN_CACHE_SAME,
	SCAN_CACHE_NEW,	    /* the last scan did not see this pid */
	SCAN_CACHE_PROGRAM, /* another program or name, or another process with the same pid */
	SCAN_CACHE_USER,    /* only the user is another one */
};

/* Makes an empty cache. Does not allocate. */
void scan_cache_init(struct scan_cache *m);
/* Safe on a zero-initialised struct. */
void scan_cache_fini(struct scan_cache *m);

/* The value of uid for a caller that does not read the user: no change of user is reported. */
#define SCAN_CACHE_NO_USER UINT32_MAX

/*
 * Compares a process with what the previous scan saw, and stores the process for the next scan.
 * program_hash: the low bits of process_identity.program_hash. If memory cannot be allocated, the
 * next scan reports the process as new.
 */
enum scan_cache_change scan_cache_compare(struct scan_cache *m, int32_t pid, uint32_t program_hash,
					  uint32_t uid);

/* Ends a scan: forgets the processes that were not in it. */
void scan_cache_end_scan(struct scan_cache *m);

/* Clears the cache. Call it before a scan: that scan then reports every process as new. */
void scan_cache_forget(struct scan_cache *m);

#endif
