/*
 * Finds the relative timeout of an interrupted system call: the length of the timeout, and the
 * result that the call has when this time is over. Used when the thread is to enter the call again
 * (restart/resume.h): then the kernel starts the timeout anew.
 *
 * The module knows the timeouts of calls that change nothing while they wait. So capture can end
 * such a call at any moment, with the result that the call has when its timeout is over. These
 * calls include:
 * - calls that the kernel restarts with the remaining time, by restart_syscall(2) (poll(2),
 *   nanosleep(2), futex(2)): a seccomp filter may refuse restart_syscall(2), so under a filter the
 *   thread enters the call itself again;
 * - calls on sockets with SO_RCVTIMEO or SO_SNDTIMEO.
 *
 * The module does not know the timeouts of
 * - select(2) with sets of descriptors, since select(2) empties the sets when the time is over;
 * - splice(2);
 * - sendfile(2) that has sent nothing.
 */
#ifndef LIB_CAPTURE_RESTART_TIMEOUT_H
#define LIB_CAPTURE_RESTART_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/capture/ptrace/arch.h"

struct timeout {
	uint64_t ns;   /* length */
	long result;   /* of the call, when the timeout is over */
	bool by_piece; /* the kernel starts the timeout anew with each piece of the transfer */
	/* ns is what was left at the interruption: the kernel has written it over the length. */
	bool is_rest;
};

/* A stopped thread, and the call that the stop interrupted. */
struct timeout_call {
	int32_t pid;
	uint32_t tid;
	int pagemap_fd; /* see proc/memory.h */
	const struct arch_regs *regs;
};

/*
 * Finds the timeout of an interrupted call that has done nothing yet. Returns false if the call has
 * none, or if the module does not know it or cannot read it.
 */
bool timeout_find(const struct timeout_call *c, struct timeout *ret);

/*
 * Finds the timeout of the call's socket (SO_RCVTIMEO, SO_SNDTIMEO). Returns 1 with *ret; 0 if the
 * socket has none; -ENOTSOCK if the call is not a known call on a socket; or an error of
 * descriptor_socket().
 */
must_check int timeout_of_socket(const struct timeout_call *c, struct timeout *ret);

#endif
