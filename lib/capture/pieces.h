/*
 * The pieces of memory that a call of a thread's names by iovecs (readv(2)).
 */
#ifndef LIB_CAPTURE_PIECES_H
#define LIB_CAPTURE_PIECES_H

#include <stdint.h>
#include <sys/uio.h>

/* No call moves more (MAX_RW_COUNT, include/linux/fs.h). */
#define PIECES_MAX_BYTES UINT64_C(0x7ffff000)

/* Where the iovecs are, and how many. */
struct pieces {
	uint64_t addr;
	uint64_t n;
};

/*
 * Adds up the iovecs of thread tid; with ret, *ret is what is left of the one
 * that byte at is in. Returns the sum, up to and with that one if there is ret,
 * at most PIECES_MAX_BYTES. 0: they cannot be read, or no call takes them, or
 * none has that byte. pagemap_fd: see lib/capture/memory.h.
 */
uint64_t pieces_walk(uint32_t tid, int pagemap_fd, const struct pieces *pieces,
		     uint64_t at, struct iovec *ret);

#endif
