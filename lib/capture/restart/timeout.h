/*
 * Relative timeouts of calls that begin anew when such a call is run again:
 * how long they are, and what the call returns when they are over.
 *
 * Only of calls that are taken out of their wait with nothing done, so that
 * "it was over at this moment" is the truth. Calls that the kernel takes up
 * with what is left (poll(2), nanosleep(2), futex(2)) are here as well: under
 * a seccomp filter they are run again instead, see lib/capture/restart/syscalls.h. And
 * those on sockets with SO_RCVTIMEO or SO_SNDTIMEO.
 * Not here: select(2) with sets, which it empties when the time is over;
 * splice(2), and sendfile(2) where it has sent nothing.
 */
#ifndef LIB_CAPTURE_RESTART_TIMEOUT_H
#define LIB_CAPTURE_RESTART_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/ptrace/arch.h"

struct timeout {
	uint64_t ns;
	long result; /* of the call, when that is over */
	/* It begins anew, for the kernel too, with each piece of its work. */
	bool by_piece;
};

/* A stopped thread in the call that it was taken out of. */
struct timeout_call {
	int32_t pid;
	uint32_t tid;
	int pagemap_fd; /* see lib/capture/proc/memory.h */
	const struct user_regs_struct *regs;
};

/*
 * That of a wait in which nothing was done. False: it has none, or not of
 * these, or it cannot be read.
 */
bool timeout_find(const struct timeout_call *c, struct timeout *ret);

/*
 * That of the call's socket. Returns 1, 0 if it has none, -ENOTSOCK if no call
 * on a socket is known here, or the error of descriptor_socket.
 */
must_check int timeout_of_socket(const struct timeout_call *c, struct timeout *ret);

#endif
