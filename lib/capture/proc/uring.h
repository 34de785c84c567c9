/*
 * What an io_uring says of itself (/proc/TID/fdinfo/N, io_uring/fdinfo.c).
 */
#ifndef LIB_CAPTURE_PROC_URING_H
#define LIB_CAPTURE_PROC_URING_H

#include <stdbool.h>
#include <stdint.h>

/*
 * True if a wait of thread tid's for so many completions, more than one, would
 * not have come back by itself: fewer are there, and none of a timeout that ran
 * out or was cancelled, which ends every wait (io_should_wake()). False where
 * it cannot be told: Linux before 5.16, a very full ring, one that is in use at
 * this moment, a descriptor that is registered.
 */
bool uring_lacks(uint32_t tid, uint64_t fd, uint64_t wanted);

#endif
