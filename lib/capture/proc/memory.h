/*
 * Reading a target's memory without waiting for anybody.
 *
 * A page that is not in memory has to be fetched by whoever reads it, and the
 * target decides by whom: a page of a FUSE file by a server of its own, one
 * below a userfaultfd by a thread of its own, when they like or never; the
 * first of these waits cannot even be ended by SIGKILL
 * (request_wait_answer() in fs/fuse/dev.c). So /proc/PID/pagemap is asked
 * first (Documentation/admin-guide/mm/pagemap.rst), and what is not there is
 * not touched. A stack's page that was never touched reads as zeros anyway.
 *
 * Between the question and the read the target can take a page away: who
 * calls shows in the heartbeat what it is about to touch.
 */
#ifndef LIB_CAPTURE_PROC_MEMORY_H
#define LIB_CAPTURE_PROC_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"

/* The most that is read at once: SAMPLE_WHOLE_MAX, and parts of two pages. */
#define MEMORY_PAGES_MAX 514

/*
 * Opens the pagemap of thread tid's memory, below the descriptor of its
 * /proc/PID; after an exec it is that of the old program. Returns 0; -ESRCH if
 * there is none, because the thread is gone or the kernel is built without it;
 * or the error of a lack (lib/capture/proc/proc.h). *ret_fd is -1 on an error:
 * without it memory_read takes every page to be there.
 */
must_check int memory_open(int proc_fd, uint32_t tid, int *ret_fd);

/*
 * Pages that were all there at the last look, from lo up to hi. It saves the
 * look for a stack that is read again and again; the caller empties it now and
 * then: {0}.
 */
struct memory_seen {
	uint64_t lo, hi;
};

/*
 * Copies up to size bytes (MEMORY_PAGES_MAX pages) at addr of thread tid,
 * pages that are not in memory as zeros. Ends before size at the last page
 * that is there, at a hole of more than hole_max pages, or where it cannot be
 * read. pagemap_fd may be -1. *seen is used, and filled in; it may be NULL.
 * Returns how many bytes of to are good; -EFAULT if there are none, -ESRCH if
 * the memory is gone.
 */
must_check ssize_t memory_read(int pagemap_fd, struct memory_seen *seen, int32_t tid, uint64_t addr,
			       void *to, size_t size, size_t hole_max);

#endif
