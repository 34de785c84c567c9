/*
 * What capture knows of system calls: a row for each call that an interrupt
 * can shorten, or that only waits. A call without a row is left as it is.
 *
 * A row says whether the interrupted call must be made to restart
 * (lib/capture/restart/repair.h), how the rest of a partial transfer is run
 * (lib/capture/restart/partial.h), and where its relative timeout stands
 * (lib/capture/restart/timeout.h).
 *
 * Most calls restart by themselves after a ptrace-stop. Some return EINTR as
 * soon as anything wakes them, a tracer included, though nothing has happened:
 * for these the result is set to -ERESTARTNOHAND, which the kernel turns into
 * a restart, or into EINTR if a handler really runs (signal(7), "Interruption
 * of system calls"; arch/x86/kernel/signal.c). For any other call that would
 * be wrong: close(2) has given its descriptor back before it returns EINTR.
 */
#ifndef LIB_CAPTURE_RESTART_SYSCALLS_H
#define LIB_CAPTURE_RESTART_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"

/* The kernel's own results for calls that a signal took out of their wait. */
#define RESULT_ERESTARTSYS	     (-512)
#define RESULT_ERESTARTNOINTR	     (-513)
#define RESULT_ERESTARTNOHAND	     (-514)
#define RESULT_ERESTART_RESTARTBLOCK (-516)

enum restart_rule {
	RESTART_LEAVE,	 /* the result is right as it is */
	RESTART_REWRITE, /* to RESULT_ERESTARTNOHAND */
	/*
	 * The same, if its first argument is a socket: like recv(2), read(2)
	 * of one with a timeout has not taken a byte when it returns EINTR.
	 */
	RESTART_IF_SOCKET,
	/* The same, if its first or its third argument is one: splice(2). */
	RESTART_IF_EITHER_SOCKET,
	/* The same, if it is an ioctl like that of tcdrain(3): repair.c. */
	RESTART_IF_DRAIN,
	/*
	 * The same, if the thread is under a seccomp filter, which may lack
	 * restart_syscall, the call that RESULT_ERESTART_RESTARTBLOCK needs.
	 */
	RESTART_IF_FILTERED,
	/*
	 * It gives up at once where it is interrupted at its work, and has to
	 * do all of that again: not by a code of the kernel's, under which it
	 * would never come to its end, but left alone (lib/capture/restart/rest.h). By
	 * its arguments: bpf(2) that loads a program, fallocate(2).
	 */
	RESTART_ALONE,
};

/* Where a call says how much it is asked for. */
enum syscall_asked {
	ASKED_NOTHING, /* a short result of this call is final */
	ASKED_LONG,    /* in its argument `size`, up to PIECES_MAX_BYTES */
	ASKED_INT,     /* in the lower half of that */
	ASKED_IOVECS,  /* its arguments 1 and 2: iovecs, and how many */
	ASKED_MESSAGE, /* its argument 1: a struct msghdr */
	ASKED_URING,   /* io_uring_enter(2): partial.c */
};

/* The call that the rest is run by. */
enum syscall_next {
	/* The same: argument `address` is moved, argument `size` is the rest */
	NEXT_SAME,
	/* A call for one piece of memory; a stream is written to by sendto(2).
	 */
	NEXT_READ,
	NEXT_WRITE,
	NEXT_RECVFROM,
	NEXT_SENDTO,
};

/* A relative timeout of a call. */
struct syscall_timeout {
	enum syscall_time {
		TIME_NONE,
		TIME_MS, /* an int; negative: for ever */
		TIME_TIMESPEC,
		TIME_TIMEVAL,
		TIME_URING, /* in a struct io_uring_getevents_arg */
	} kind;
	uint8_t argument; /* which argument is it, or points to it */
	int result;	  /* of the call when that is over */
	/* NULL, or true where it is one, and can be told to be over. */
	bool (*is_one)(const struct user_regs_struct *regs);
};

/* For which timeout of the socket that is its argument 0 a call may wait. */
enum syscall_socket { SOCKET_NONE, SOCKET_RECEIVES, SOCKET_SENDS };

struct syscall_rule {
	bool only_waits; /* it gives the processor away, and does little else */

	/* What is done where the call returns `interrupted`; 0: -EINTR */
	enum restart_rule restart;
	int interrupted;

	/*
	 * A partial transfer. It is gone on with if the call's argument `flags`
	 * has all of `wanted` and none but `allowed`, its argument `null` is 0,
	 * and its argument `left`, if it is not 0, points to a timespec that is
	 * not. No such argument: 0.
	 */
	enum syscall_asked asked;
	enum syscall_next next;
	uint8_t size, address;
	uint8_t step; /* bytes at address for each of what is asked for */
	uint8_t flags, null, left;
	int wanted, allowed;
	/* Sets of 1 << enum descriptor_kind, of argument 0. */
	uint8_t files; /* only we can have cut it short on these; 0: on any */
	uint8_t alike; /* the next call is alike on these: partial_is_alike() */
	/* Set of 1 << argument: the descriptors that it moves data between. */
	uint8_t descriptors;

	struct syscall_timeout timeout;
	enum syscall_socket socket;
	bool by_piece;	   /* each piece of its work has the socket's timeout */
	bool starts_again; /* by itself, with all of its time */
};

/* That of call nr of the native ABI, never NULL. */
const struct syscall_rule *syscall_rule(long nr);

/* nr and result of a call of the native ABI. */
enum restart_rule syscall_restart_rule(long nr, long result);

/* True for a result that means: taken out of a wait. */
bool syscall_was_waiting(long result);

#endif
