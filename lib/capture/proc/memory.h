/*
 * Reads a target's memory without waiting for a page that the target may withhold.
 *
 * A page that is not in memory is fetched by the process that reads it, and the target may decide
 * when the page arrives: a page of a FUSE file comes from the file's server, and a page below a
 * userfaultfd from a thread of the target. Such a wait may never end. Not even SIGKILL ends the
 * wait for a page of a FUSE file (request_wait_answer() in fs/fuse/dev.c). So the module first
 * reads /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst), and then only pages that are
 * in memory or in swap. A page of a stack that was never touched would read as zeros anyway.
 *
 * The target can still remove a page between the two reads, and the read then hangs. So before a
 * read the caller notes in the heartbeat which target it touches (capture_beat, counters.h).
 */
#ifndef LIB_CAPTURE_PROC_MEMORY_H
#define LIB_CAPTURE_PROC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* The most pages in one read: those of SAMPLE_WHOLE_MAX bytes (sample.h), and two more. */
#define MEMORY_PAGES_MAX 514

/*
 * Opens the pagemap of thread tid below proc_fd, the descriptor of its /proc/PID. The caller closes
 * *ret_fd. After an exec *ret_fd still refers to the memory of the old program. Returns 0; -ESRCH
 * if the thread is gone, or if the kernel has no pagemap; or -errno of PROC_LACK (proc.h). On error
 * *ret_fd is -1, with which memory_read() assumes that every page is in memory.
 */
must_check int memory_open(int proc_fd, uint32_t tid, int *ret_fd);

/*
 * A cache for memory_read(): at the last read of pagemap all pages from address lo up to hi were in
 * memory or in swap. Saves reading pagemap for a stack that is read again and again. {0} is empty.
 * The caller sets it to {0} every few ticks, since the kernel can evict a file's pages.
 */
struct memory_seen {
	uint64_t lo, hi;
};

/*
 * Copies up to size bytes from addr in the memory of thread tid. A hole is a run of pages that are
 * neither in memory nor in swap. Holes within the copy become zeros. The copy ends
 * - after MEMORY_PAGES_MAX pages;
 * - before a hole of more than hole_max pages, or one that reaches the end of the range;
 * - where the memory cannot be read.
 *
 * pagemap_fd: from memory_open(), or -1. The cache *seen is used and updated; seen may be NULL.
 * Returns the number of valid bytes in `to`; -EFAULT if there are none; or -ESRCH if the process
 * has no memory any more, or addr is above user space.
 */
must_check ssize_t memory_read(int pagemap_fd, struct memory_seen *seen, int32_t tid, uint64_t addr,
			       void *to, size_t size, size_t hole_max);

/*
 * Returns true if all pages of the size bytes at addr, at most MEMORY_PAGES_MAX pages, are in
 * memory and not swapped out: process_vm_readv(2) then fetches none of them. Also returns true if
 * pagemap_fd is -1; false if pagemap cannot be read or size is 0.
 */
bool memory_is_there(int pagemap_fd, uint64_t addr, size_t size);

#endif
