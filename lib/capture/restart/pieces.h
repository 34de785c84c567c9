/*
 * The pieces of memory that a call of a thread's names by iovecs (readv(2)).
 */
#ifndef LIB_CAPTURE_RESTART_PIECES_H
#define LIB_CAPTURE_RESTART_PIECES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/capture/ptrace/arch.h"

/* No call moves more (MAX_RW_COUNT, include/linux/fs.h). */
#define PIECES_MAX_BYTES UINT64_C(0x7ffff000)

/* Where the iovecs are, and how many. */
struct pieces {
	uint64_t addr;
	uint64_t n;
};

/*
 * Those of the call that a stopped thread was taken out of: readv(2), writev(2)
 * and the like, sendmsg(2) without an address, recvmsg(2) without room for
 * control messages. False: it is none of these, or cannot be read.
 * pagemap_fd: see lib/capture/proc/memory.h.
 */
bool pieces_find(uint32_t tid, int pagemap_fd, const struct user_regs_struct *regs,
		 struct pieces *ret);

/*
 * Adds up the iovecs of thread tid; with ret, *ret is what is left of the one
 * that byte at is in. Returns the sum, up to and with that one if there is ret,
 * at most PIECES_MAX_BYTES. 0: they cannot be read, or no call takes them, or
 * none has that byte.
 */
uint64_t pieces_walk(uint32_t tid, int pagemap_fd, const struct pieces *pieces, uint64_t at,
		     struct iovec *ret);

#endif
