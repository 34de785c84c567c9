/*
 * Reads a target's memory without waiting for a page to be fetched.
 *
 * A page that is not in memory is fetched by the process that reads it, and the target may decide
 * when it arrives: a page of a FUSE file comes from the file's server, a page below a userfaultfd
 * from a thread of the target. These waits can last for ever, and not even SIGKILL ends the first
 * one (request_wait_answer() in fs/fuse/dev.c). So the module reads /proc/PID/pagemap first
 * (Documentation/admin-guide/mm/pagemap.rst) and reads only pages that are in memory. A page of a
 * stack that was never touched reads as zeros anyway.
 *
 * Between the two reads the target can still evict a page, and the read then hangs. So the caller
 * notes in the heartbeat which target's memory it reads, which tells the broker why capture hangs.
 */
#ifndef LIB_CAPTURE_PROC_MEMORY_H
#define LIB_CAPTURE_PROC_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* The most pages in one read: SAMPLE_WHOLE_MAX, and parts of two more. */
#define MEMORY_PAGES_MAX 514

/*
 * Opens the pagemap of thread tid below proc_fd, the descriptor of its /proc/PID. After an exec the
 * descriptor is still that of the old program. Returns 0; -ESRCH if the thread is gone, or the
 * kernel has no pagemap; or the negative errno of PROC_LACK (proc.h). *ret_fd is -1 on error:
 * memory_read then takes every page to be in memory.
 */
must_check int memory_open(int proc_fd, uint32_t tid, int *ret_fd);

/*
 * A cache for memory_read(): all pages from lo up to hi were in memory when pagemap was last read.
 * Saves reading pagemap for a stack that is read again and again. {0} is empty; the caller empties
 * it every few ticks, since pages can be evicted.
 */
struct memory_seen {
	uint64_t lo, hi;
};

/*
 * Copies up to size bytes (MEMORY_PAGES_MAX pages) at addr of thread tid; pages that are not in
 * memory become zeros. The copy ends at the last page that is in memory, before a hole of more than
 * hole_max pages, or where the memory cannot be read. pagemap_fd may be -1. seen is used and
 * updated; it may be NULL. Returns the number of valid bytes in `to`, -EFAULT if there are none, or
 * -ESRCH if the memory is gone.
 */
must_check ssize_t memory_read(int pagemap_fd, struct memory_seen *seen, int32_t tid, uint64_t addr,
			       void *to, size_t size, size_t hole_max);

#endif
