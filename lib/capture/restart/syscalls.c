#include "lib/capture/restart/syscalls.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/capture/proc/descriptor.h"

/* The size of a struct io_event (include/uapi/linux/aio_abi.h). */
#define IO_EVENT_BYTES 32

/* Flags of send(2) and recv(2) that do not change the meaning of a partial result. */
#define SEND_FLAGS (MSG_NOSIGNAL | MSG_MORE | MSG_DONTROUTE | MSG_ZEROCOPY)
#define RECV_FLAGS (MSG_NOSIGNAL | MSG_CMSG_CLOEXEC)

/* Returns true if select(2) has no sets. It would empty them when its time is over. */
static bool has_no_sets(const struct arch_regs *regs)
{
	return arch_argument(regs, 1) == 0 && arch_argument(regs, 2) == 0 &&
	       arch_argument(regs, 3) == 0;
}

/* FUTEX_WAIT is the only command of futex(2) with a relative timeout. */
static bool is_futex_wait(const struct arch_regs *regs)
{
	return ((int)arch_argument(regs, 1) & FUTEX_CMD_MASK) == FUTEX_WAIT;
}

/* Returns true for a relative timeout on one of these clocks. Other clocks count processor time. */
static bool is_relative(const struct arch_regs *regs)
{
	const clockid_t clock = (clockid_t)arch_argument(regs, 0);

	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME) &&
	       (arch_argument(regs, 1) & TIMER_ABSTIME) == 0;
}

/* A set of kinds of descriptors. */
#define ON(kind) (1u << DESCRIPTOR_##kind)
#define ON_ANY	 UINT8_MAX

/* Fields that several rows have in common. */
#define FD(n)		 .descriptors = 1u << (n)
#define FDS(n, m)	 .descriptors = 1u << (n) | 1u << (m)
#define BYTES(n)	 .asked = ASKED_LONG, .size = (n)
#define BYTES_AT(a, n)	 BYTES(n), .address = (a), .step = 1
#define EVENTS_AT(a, n)	 BYTES(n), .address = (a), .step = IO_EVENT_BYTES
#define WITHIN(what, n)	 .timeout.kind = TIME_##what, .timeout.argument = (n)
#define WAITS		 .restart = RESTART_REWRITE
#define SENDS		 .restart = RESTART_REWRITE, .socket = SOCKET_SENDS
#define RECEIVES	 .restart = RESTART_REWRITE, .socket = SOCKET_RECEIVES
#define WAITS_FOR_ALL(n) .flags = (n), .wanted = MSG_WAITALL, .allowed = RECV_FLAGS | MSG_WAITALL

/* Calls on sockets with a timeout (SO_RCVTIMEO, SO_SNDTIMEO) return EINTR. */
#define MAY_SEND    .restart = RESTART_IF_SOCKET, .socket = SOCKET_SENDS
#define MAY_RECEIVE .restart = RESTART_IF_SOCKET, .socket = SOCKET_RECEIVES

/*
 * Files on which a program without signal handlers relies on a blocking write(2) to write all
 * bytes, and on which only capture can have cut it short.
 */
#define WRITTEN (ON(PIPE) | ON(STREAM))

static const struct syscall_rule rules[] = {
	[SYS_read] = {MAY_RECEIVE},
	[SYS_readv] = {MAY_RECEIVE},
	[SYS_preadv2] = {MAY_RECEIVE},

	/*
	 * Sources: fs/pipe.c, and see sendto. The rest of a write to a socket is sent by sendto(2).
	 * Programs whose seccomp filter compares a size write little, and a pipe never takes so
	 * little in parts (PIPE_BUF).
	 */
	[SYS_write] = {MAY_SEND, FD(0), BYTES_AT(1, 2), .next = NEXT_WRITE, .files = WRITTEN,
		       .alike = ON(PIPE)},
	[SYS_writev] = {MAY_SEND, FD(0), .asked = ASKED_IOVECS, .next = NEXT_WRITE,
			.files = WRITTEN},
	[SYS_pwritev2] = {MAY_SEND, FD(0), .asked = ASKED_IOVECS, .next = NEXT_WRITE, .flags = 5,
			  .files = WRITTEN},

	/* With the address of a peer the call sends one message as a whole. */
	[SYS_sendto] = {SENDS, FD(0), BYTES_AT(1, 2), .next = NEXT_SENDTO, .flags = 3,
			.allowed = SEND_FLAGS, .null = 4, .files = ON(STREAM), .alike = ON_ANY},
	[SYS_sendmsg] = {SENDS, FD(0), .asked = ASKED_MESSAGE, .next = NEXT_SENDTO, .flags = 2,
			 .allowed = SEND_FLAGS, .files = ON(STREAM)},
	/* On a stream the last message itself may have been sent in part. */
	[SYS_sendmmsg] = {SENDS, FD(0), .asked = ASKED_INT, .size = 2, .address = 1,
			  .step = sizeof(struct mmsghdr), .by_piece = true, .flags = 3,
			  .allowed = SEND_FLAGS, .files = ON(DATAGRAM), .alike = ON_ANY},
	[SYS_recvfrom] = {RECEIVES, FD(0), BYTES_AT(1, 2), .next = NEXT_RECVFROM, WAITS_FOR_ALL(3),
			  .files = ON(STREAM), .alike = ON_ANY},
	[SYS_recvmsg] = {RECEIVES, FD(0), .asked = ASKED_MESSAGE, .next = NEXT_RECVFROM,
			 WAITS_FOR_ALL(2), .files = ON(STREAM)},
	[SYS_recvmmsg] = {RECEIVES},
	[SYS_accept] = {RECEIVES},
	[SYS_accept4] = {RECEIVES},
	[SYS_connect] = {SENDS, .timeout.result = -EINPROGRESS},

	[SYS_sendfile] = {MAY_SEND, .starts_again = true},
	[SYS_splice] = {FDS(0, 2), BYTES(4), .restart = RESTART_IF_EITHER_SOCKET,
			.files = ON(PIPE)},

	[SYS_io_getevents] = {WAITS, EVENTS_AT(3, 1), WITHIN(TIMESPEC, 4), .alike = ON_ANY},
	/* The kernel restarts this call, but with its whole timeout: see resume.h. */
	[SYS_io_pgetevents] = {EVENTS_AT(3, 1), WITHIN(TIMESPEC, 4), .restart = RESTART_REWRITE,
			       .interrupted = RESULT_ERESTARTNOHAND, .alike = ON_ANY},
	/* The call returns EINTR only if it has submitted nothing and no completion is there. */
	[SYS_io_uring_enter] = {WAITS, WITHIN(URING, 4), .timeout.result = -ETIME},
	/*
	 * Before Linux 6.13 some operations wait until no request uses the buffers or files that
	 * they remove (io_rsrc_ref_quiesce() in io_uring/rsrc.c), and in older kernels others until
	 * no request is in flight.
	 */
	[SYS_io_uring_register] = {.restart = RESTART_IF_QUIESCES},

#ifdef SYS_epoll_wait
	[SYS_epoll_wait] = {WAITS, WITHIN(MS, 3)},
#endif
	[SYS_epoll_pwait] = {WAITS, WITHIN(MS, 3)},
	[SYS_epoll_pwait2] = {WAITS, WITHIN(TIMESPEC, 3)},
#ifdef SYS_poll
	[SYS_poll] = {WITHIN(MS, 2)},
#endif
	/*
	 * The kernel restarts these calls, unless it cannot write the remaining time into the
	 * caller's timespec (fs/select.c).
	 */
	[SYS_ppoll] = {WAITS, WITHIN(TIMESPEC, 2)},
	[SYS_pselect6] = {WAITS, WITHIN(TIMESPEC, 4), .timeout.applies = has_no_sets},
#ifdef SYS_select
	[SYS_select] = {WAITS, WITHIN(TIMEVAL, 4), .timeout.applies = has_no_sets},
#endif
	[SYS_semop] = {.restart = RESTART_REWRITE},
	[SYS_semtimedop] = {WAITS, WITHIN(TIMESPEC, 3), .timeout.result = -EAGAIN},
	[SYS_rt_sigtimedwait] = {WAITS, WITHIN(TIMESPEC, 2), .timeout.result = -EAGAIN},
	[SYS_futex] = {WITHIN(TIMESPEC, 3), .timeout.result = -ETIMEDOUT,
		       .timeout.applies = is_futex_wait},
	[SYS_nanosleep] = {WITHIN(TIMESPEC, 0), .timeout.rest = 1},
	[SYS_clock_nanosleep] = {WITHIN(TIMESPEC, 2), .timeout.rest = 3,
				 .timeout.applies = is_relative},

	[SYS_ioctl] = {.restart = RESTART_IF_DRAIN},
	[SYS_fallocate] = {.restart = RESTART_UNDISTURBED},
	[SYS_bpf] = {.restart = RESTART_UNDISTURBED, .interrupted = -EAGAIN},
};

bool syscall_waits(long nr, const struct arch_regs *regs)
{
	const enum syscall_time kind = syscall_rule(nr)->timeout.kind;

	/* These calls wait for a disk. They have no timeout, and so no row in the table. */
	if (nr == SYS_fsync || nr == SYS_fdatasync)
		return true;
	if (nr != SYS_futex)
		return kind != TIME_NONE && kind != TIME_URING;
	switch ((int)arch_argument(regs, 1) & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI:
		return true;
	default:
		return false;
	}
}

bool syscall_always_goes_on(long nr)
{
	switch (nr) {
	case SYS_futex:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall:
	case SYS_rt_sigsuspend:
	case SYS_wait4:
	case SYS_waitid:
		return true;
	/* Restarted by capture. */
	case SYS_io_getevents:
	case SYS_semop:
	case SYS_semtimedop:
		return true;
	default:
		return false;
	}
}

const struct syscall_rule *syscall_rule(long nr)
{
	static const struct syscall_rule none;

	return nr >= 0 && (size_t)nr < array_size(rules) ? &rules[nr] : &none;
}

bool syscall_was_waiting(long result)
{
	return result == -EINTR ||
	       (result <= RESULT_ERESTARTSYS && result >= RESULT_ERESTART_RESTARTBLOCK);
}

enum restart_rule syscall_restart_rule(long nr, long result)
{
	const struct syscall_rule *rule = syscall_rule(nr);

	if (result == RESULT_ERESTART_RESTARTBLOCK)
		return RESTART_IF_FILTERED;
	return result == (rule->interrupted != 0 ? rule->interrupted : -EINTR) ? rule->restart
									       : RESTART_LEAVE;
}
