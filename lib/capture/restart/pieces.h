/*
 * Reads the iovecs of a system call, such as writev(2): the pieces of memory that it transfers.
 */
#ifndef LIB_CAPTURE_RESTART_PIECES_H
#define LIB_CAPTURE_RESTART_PIECES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/capture/ptrace/arch.h"

/* The most bytes that one call moves (MAX_RW_COUNT, include/linux/fs.h). */
#define PIECES_MAX_BYTES UINT64_C(0x7ffff000)

/* The address of an array of iovecs in the target, and their number. */
struct pieces {
	uint64_t addr;
	uint64_t n;
};

/*
 * Finds the iovecs of the interrupted call of thread tid, which is stopped with registers regs:
 * writev(2), pwritev2(2), sendmsg(2) without an address, recvmsg(2) without room for control
 * messages. Returns false for any other call, or if the memory cannot be read. In all functions,
 * pagemap_fd is that of memory_read() (proc/memory.h).
 */
bool pieces_find(uint32_t tid, int pagemap_fd, const struct arch_regs *regs, struct pieces *ret);

/*
 * Returns the sum of the iovecs' bytes, at most PIECES_MAX_BYTES; 0 if the iovecs cannot be read or
 * are invalid: more than 1,024, or one of more than PIECES_MAX_BYTES.
 */
uint64_t pieces_sum(uint32_t tid, int pagemap_fd, const struct pieces *pieces);

/*
 * Finds the iovec that contains byte `at`, counted from 0 over all iovecs, and sets *ret to its
 * part from that byte on. Returns false if there is no such byte, or if the iovecs cannot be read
 * or are invalid.
 */
bool pieces_at(uint32_t tid, int pagemap_fd, const struct pieces *pieces, uint64_t at,
	       struct iovec *ret);

#endif
