/*
 * Relative timeouts of calls that begin anew when such a call is run again:
 * how long they are, and what the call returns when they are over.
 *
 * Only of calls that are taken out of their wait with nothing done, so that
 * "it was over at this moment" is the truth. Calls that the kernel takes up
 * with what is left (poll(2), nanosleep(2), futex(2)) are here as well: under
 * a seccomp filter they are run again instead, see lib/capture/syscalls.h.
 * Not here: sockets with SO_RCVTIMEO or SO_SNDTIMEO, whose time stands in the
 * kernel; select(2) with sets, which it empties when the time is over.
 */
#ifndef LIB_CAPTURE_TIMEOUT_H
#define LIB_CAPTURE_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/arch.h"

struct timeout {
	uint64_t ns;
	long result; /* of the call, when that is over */
};

/*
 * That of the call that thread tid was taken out of. False: it has none, or
 * not of these, or it cannot be read. pagemap_fd: see lib/capture/memory.h.
 */
bool timeout_find(uint32_t tid, int pagemap_fd,
		  const struct user_regs_struct *regs, struct timeout *ret);

#endif
