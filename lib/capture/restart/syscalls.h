/*
 * The table of system calls: a row for each call that an interrupt can shorten. Capture leaves a
 * call without a row as it is (exception: syscall_restart_rule). A row has three parts: whether
 * capture must make the interrupted call restart (repair.h), how the rest of a partial transfer is
 * requested (partial.h), and where the call's relative timeout is (timeout.h).
 *
 * The kernel restarts most calls by itself after a ptrace-stop. Some return EINTR as soon as
 * anything wakes the thread, including a tracer. Capture sets the result of such a call to
 * -ERESTARTNOHAND: then the kernel restarts the call, or returns EINTR if a handler runs
 * (signal(7), "Interruption of system calls"; arch/x86/kernel/signal.c). For a call without a row
 * this would be wrong. For example, close(2) has released its descriptor before it returns EINTR.
 */
#ifndef LIB_CAPTURE_RESTART_SYSCALLS_H
#define LIB_CAPTURE_RESTART_SYSCALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"

/* Restart codes: the kernel's internal results of calls whose wait a signal or a stop has ended. */
#define RESULT_ERESTARTSYS	     (-512)
#define RESULT_ERESTARTNOINTR	     (-513)
#define RESULT_ERESTARTNOHAND	     (-514)
#define RESULT_ERESTART_RESTARTBLOCK (-516)

enum restart_rule {
	RESTART_LEAVE,	 /* the result is correct */
	RESTART_REWRITE, /* the result is to be set to RESULT_ERESTARTNOHAND */
	/*
	 * RESTART_REWRITE if the first argument is a socket. A read(2) or write(2) of a socket
	 * returns EINTR only if the socket has a timeout, and has then moved no byte.
	 */
	RESTART_IF_SOCKET,
	/* RESTART_REWRITE if the first or the third argument is a socket: splice(2). */
	RESTART_IF_EITHER_SOCKET,
	/*
	 * RESTART_REWRITE for an ioctl(2) that waits until a terminal has sent its output, as
	 * tcdrain(3), and that has had no effect if the wait is interrupted.
	 */
	RESTART_IF_DRAIN,
	/*
	 * RESTART_REWRITE for io_uring_register(2), except IORING_REGISTER_SYNC_CANCEL: the others
	 * have had no effect when they return EINTR.
	 */
	RESTART_IF_QUIESCES,
	/*
	 * RESTART_REWRITE if the thread is under a seccomp filter, which may refuse
	 * restart_syscall(2), the call by which the kernel restarts this one.
	 */
	RESTART_IF_FILTERED,
	/*
	 * The call discards its work when it is interrupted, and has to do all of it again. If the
	 * kernel restarted the call and each tick interrupted it, it would never end. So the thread
	 * enters it again, and capture does not interrupt it (resume.h). Applies to bpf(2) that
	 * loads a program, and to fallocate(2) that only allocates: repair_needs_undisturbed()
	 * checks the arguments.
	 */
	RESTART_UNDISTURBED,
};

/* Which argument of a call has the requested amount. Arguments are counted from 0. */
enum syscall_asked {
	ASKED_NOTHING, /* a short result of this call is final */
	ASKED_LONG,    /* argument `size`, at most PIECES_MAX_BYTES */
	ASKED_INT,     /* the lower 32 bits of argument `size` */
	ASKED_IOVECS,  /* arguments 1 and 2: iovecs and their number */
	ASKED_MESSAGE, /* argument 1: a struct msghdr */
};

/* The call that transfers the rest. */
enum syscall_next {
	NEXT_SAME, /* the same call: argument `address` is advanced, argument `size` is the rest */
	/* One call for each piece of memory that is left (of iovecs: pieces.h): */
	NEXT_WRITE,    /* write(2); sendto(2) with MSG_NOSIGNAL if the file is a stream socket */
	NEXT_RECVFROM, /* recvfrom(2) */
	NEXT_SENDTO,   /* sendto(2) */
};

/* The relative timeout of a call. */
struct syscall_timeout {
	enum syscall_time {
		TIME_NONE,
		TIME_MS, /* an int; negative: no timeout */
		TIME_TIMESPEC,
		TIME_TIMEVAL,
		TIME_URING, /* in a struct io_uring_getevents_arg */
	} kind;
	uint8_t argument; /* index of the argument that is the timeout or points to it */
	/*
	 * Index of the argument that points to where the kernel writes what is left of the timeout
	 * when the call is interrupted; 0: the kernel does not write it.
	 */
	uint8_t rest;
	int result; /* of the call when the timeout is over */
	/*
	 * NULL, or a function that returns false if this timeout does not apply to the call: the
	 * timeout is not relative, or capture cannot make the call's result at its end.
	 */
	bool (*applies)(const struct arch_regs *regs);
};

/* Which timeout of the socket in argument 0 applies to the call. */
enum syscall_socket { SOCKET_NONE, SOCKET_RECEIVES, SOCKET_SENDS };

struct syscall_rule {
	/* How the call is restarted if its result is `interrupted`, where 0 stands for -EINTR. */
	enum restart_rule restart;
	int interrupted;

	/*
	 * size, address, flags and null are indices of arguments; 0: the call has no such argument.
	 * A partial transfer is resumed only if argument `flags` has all bits of `wanted` and no
	 * bit that is not in `allowed`, and if argument `null` is 0.
	 */
	enum syscall_asked asked;
	enum syscall_next next;
	uint8_t size, address;
	uint8_t step; /* bytes at `address` for each unit of `size` */
	uint8_t flags, null;
	int wanted, allowed;
	/*
	 * Sets of 1 << enum descriptor_kind, for the file of argument 0. files: the kinds of files
	 * on which the call is resumed, because on them only an interruption makes it short; 0: all
	 * kinds.
	 */
	uint8_t files;
	uint8_t alike; /* kinds of files on which partial_changes_only_buffer() is true */
	/* Set of 1 << argument: descriptors that the call moves data between. */
	uint8_t descriptors;

	struct syscall_timeout timeout;
	enum syscall_socket socket;
	bool by_piece;	   /* the socket's timeout starts anew with each piece of the transfer */
	bool starts_again; /* the kernel restarts the call, with its whole timeout */
};

/* Returns the row of call nr of the native ABI; a row of zeros, not NULL, if there is none. */
const struct syscall_rule *syscall_rule(long nr);

/*
 * Returns true for call nr with the arguments in regs if it does little but wait: a call whose row
 * has a timeout (not TIME_URING), a futex(2) that waits, fsync(2) and fdatasync(2).
 */
bool syscall_waits(long nr, const struct arch_regs *regs);

/*
 * Returns true for a call that goes on after a ptrace-stop, with its remaining timeout. The kernel
 * restarts most of these calls. Capture restarts io_getevents(2), semop(2) and semtimedop(2), but
 * only if it knows their arguments (arch_knows_arguments). A seccomp filter may prevent a restart.
 */
bool syscall_always_goes_on(long nr);

/*
 * Returns the rule for call nr of the native ABI with this result: that of the row, or
 * RESTART_LEAVE if the result is not `interrupted`. Exception: with RESULT_ERESTART_RESTARTBLOCK
 * returns RESTART_IF_FILTERED for every call, even for one without a row.
 */
enum restart_rule syscall_restart_rule(long nr, long result);

/* Returns true for the results of a call whose wait was interrupted: -EINTR and restart codes. */
bool syscall_was_waiting(long result);

#endif
