#include "lib/capture/timeout.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/capture/descriptor.h"
#include "lib/capture/memory.h"

/* Flags of io_uring_enter(2) of Linux 6.12 and 6.13. */
#define ENTER_ABS_TIMER	  (1u << 5)
#define ENTER_EXT_ARG_REG (1u << 6)

static bool read_all(const struct timeout_call *c, uint64_t addr, void *to,
		     size_t size)
{
	return memory_read(c->pagemap_fd, NULL, (int32_t)c->tid, addr, to, size,
			   0) == (ssize_t)size;
}

/* An int that is negative for ever. */
static bool milliseconds(uint64_t argument, uint64_t *ret)
{
	const int32_t ms = (int32_t)(uint32_t)argument;

	if (ms < 0)
		return false;
	*ret = (uint64_t)ms * NS_PER_MS;
	return true;
}

/* A timespec, or a timeval with its unit; NULL is for ever. */
static bool seconds_at(const struct timeout_call *c, uint64_t addr,
		       uint64_t unit_ns, uint64_t *ret)
{
	struct timespec t;

	return addr != 0 && read_all(c, addr, &t, sizeof(t)) &&
	       clock_length_ns(t.tv_sec, t.tv_nsec, unit_ns, ret);
}

static bool timespec_at(const struct timeout_call *c, unsigned int n,
			uint64_t *ret)
{
	return seconds_at(c, arch_argument(c->regs, n), 1, ret);
}

/* The three sets of select(2). */
static bool has_sets(const struct timeout_call *c)
{
	return arch_argument(c->regs, 1) != 0 ||
	       arch_argument(c->regs, 2) != 0 || arch_argument(c->regs, 3) != 0;
}

static bool of_io_uring(const struct timeout_call *c, uint64_t *ret)
{
	const uint64_t flags = arch_argument(c->regs, 3);
	struct io_uring_getevents_arg arg;

	return (flags & IORING_ENTER_EXT_ARG) != 0 &&
	       (flags & (ENTER_ABS_TIMER | ENTER_EXT_ARG_REG)) == 0 &&
	       read_all(c, arch_argument(c->regs, 4), &arg, sizeof(arg)) &&
	       seconds_at(c, arg.ts, 1, ret);
}

/* Only this command of futex(2) has a relative one. */
static bool of_futex(const struct timeout_call *c, uint64_t *ret)
{
	return ((int)arch_argument(c->regs, 1) & FUTEX_CMD_MASK) ==
		       FUTEX_WAIT &&
	       timespec_at(c, 3, ret);
}

/* Others run by a processor's time. */
static bool of_sleep(const struct timeout_call *c, uint64_t *ret)
{
	const clockid_t clock = (clockid_t)arch_argument(c->regs, 0);

	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ||
		clock == CLOCK_BOOTTIME) &&
	       (arch_argument(c->regs, 1) & TIMER_ABSTIME) == 0 &&
	       timespec_at(c, 2, ret);
}

static bool find(const struct timeout_call *c, long nr, struct timeout *t)
{
	const struct user_regs_struct *regs = c->regs;

	switch (nr) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
		return milliseconds(arch_argument(regs, 3), &t->ns);
#ifdef SYS_poll
	case SYS_poll:
		return milliseconds(arch_argument(regs, 2), &t->ns);
#endif
	case SYS_epoll_pwait2:
		return timespec_at(c, 3, &t->ns);
	case SYS_ppoll:
		return timespec_at(c, 2, &t->ns);
	case SYS_pselect6:
		return !has_sets(c) && timespec_at(c, 4, &t->ns);
#ifdef SYS_select
	case SYS_select:
		return !has_sets(c) &&
		       seconds_at(c, arch_argument(regs, 4), NS_PER_US, &t->ns);
#endif
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return timespec_at(c, 4, &t->ns);
	case SYS_nanosleep:
		return timespec_at(c, 0, &t->ns);
	case SYS_clock_nanosleep:
		return of_sleep(c, &t->ns);
	case SYS_semtimedop:
		t->result = -EAGAIN;
		return timespec_at(c, 3, &t->ns);
	case SYS_rt_sigtimedwait:
		t->result = -EAGAIN;
		return timespec_at(c, 2, &t->ns);
	case SYS_futex:
		t->result = -ETIMEDOUT;
		return of_futex(c, &t->ns);
	case SYS_io_uring_enter:
		t->result = -ETIME;
		return of_io_uring(c, &t->ns);
	default:
		return false;
	}
}

/*
 * True if a call may wait for the socket that is its first argument, and for
 * what.
 */
static bool is_on_socket(long nr, bool *ret_sends)
{
	*ret_sends = false;
	switch (nr) {
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_read:
	case SYS_readv:
	case SYS_preadv2:
	case SYS_accept:
	case SYS_accept4:
		return true;
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_pwritev2:
	case SYS_sendfile:
	case SYS_connect:
		*ret_sends = true;
		return true;
	default:
		return false;
	}
}

/*
 * Messages are waited for one by one, what is sent from a file goes by pages,
 * and AF_UNIX sends in pieces of 32 KiB (net/unix/af_unix.c).
 */
static bool is_by_piece(long nr, bool sends, bool is_unix)
{
	return nr == SYS_recvmmsg || nr == SYS_sendmmsg || nr == SYS_sendfile ||
	       (sends && is_unix);
}

int timeout_of_socket(const struct timeout_call *c, struct timeout *ret)
{
	struct descriptor_socket s;
	long nr, result;
	uint64_t ns;
	bool sends;
	int r;

	if (!arch_interrupted_call(c->regs, &nr, &result) ||
	    !is_on_socket(nr, &sends))
		return -ENOTSOCK;
	r = descriptor_socket(c->pid, c->tid, arch_argument(c->regs, 0), &s);
	if (r < 0)
		return r;
	ns = sends ? s.send_ns : s.receive_ns;
	if (ns == 0)
		return 0;
	*ret = (struct timeout){.ns = ns,
				.result = nr == SYS_connect && !s.is_unix
						  ? -EINPROGRESS
						  : -EAGAIN,
				.by_piece = is_by_piece(nr, sends, s.is_unix)};
	return 1;
}

bool timeout_find(const struct timeout_call *c, struct timeout *ret)
{
	struct timeout t = {.result = 0};
	long nr, result;

	if (!arch_interrupted_call(c->regs, &nr, &result))
		return false;
	/* These may come out with a code by which they begin anew. */
	if (nr == SYS_sendfile || nr == SYS_splice)
		return false;
	if (timeout_of_socket(c, &t) != 1 && !find(c, nr, &t))
		return false;
	*ret = t;
	return true;
}
