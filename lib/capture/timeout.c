#include "lib/capture/timeout.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/capture/memory.h"

/* What is longer is no matter to anybody: a hundred years. */
#define SECONDS_MAX INT64_C(3155760000)

/* Flags of io_uring_enter(2) of Linux 6.12 and 6.13. */
#define ENTER_ABS_TIMER	  (1u << 5)
#define ENTER_EXT_ARG_REG (1u << 6)

struct call {
	uint32_t tid;
	int pagemap_fd;
	const struct user_regs_struct *regs;
};

static bool read_all(const struct call *c, uint64_t addr, void *to, size_t size)
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
static bool seconds_at(const struct call *c, uint64_t addr, uint64_t unit_ns,
		       uint64_t *ret)
{
	struct timespec t;

	if (addr == 0 || !read_all(c, addr, &t, sizeof(t)) || t.tv_sec < 0 ||
	    t.tv_sec > SECONDS_MAX || t.tv_nsec < 0 ||
	    (uint64_t)t.tv_nsec >= NS_PER_SEC / unit_ns)
		return false;
	*ret = (uint64_t)t.tv_sec * NS_PER_SEC + (uint64_t)t.tv_nsec * unit_ns;
	return true;
}

static bool timespec_at(const struct call *c, unsigned int n, uint64_t *ret)
{
	return seconds_at(c, arch_argument(c->regs, n), 1, ret);
}

/* The three sets of select(2). */
static bool has_sets(const struct call *c)
{
	return arch_argument(c->regs, 1) != 0 ||
	       arch_argument(c->regs, 2) != 0 || arch_argument(c->regs, 3) != 0;
}

static bool of_io_uring(const struct call *c, uint64_t *ret)
{
	const uint64_t flags = arch_argument(c->regs, 3);
	struct io_uring_getevents_arg arg;

	return (flags & IORING_ENTER_EXT_ARG) != 0 &&
	       (flags & (ENTER_ABS_TIMER | ENTER_EXT_ARG_REG)) == 0 &&
	       read_all(c, arch_argument(c->regs, 4), &arg, sizeof(arg)) &&
	       seconds_at(c, arg.ts, 1, ret);
}

/* Only this command of futex(2) has a relative one. */
static bool of_futex(const struct call *c, uint64_t *ret)
{
	return ((int)arch_argument(c->regs, 1) & FUTEX_CMD_MASK) ==
		       FUTEX_WAIT &&
	       timespec_at(c, 3, ret);
}

/* Others run by a processor's time. */
static bool of_sleep(const struct call *c, uint64_t *ret)
{
	const clockid_t clock = (clockid_t)arch_argument(c->regs, 0);

	return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC ||
		clock == CLOCK_BOOTTIME) &&
	       (arch_argument(c->regs, 1) & TIMER_ABSTIME) == 0 &&
	       timespec_at(c, 2, ret);
}

static bool find(const struct call *c, long nr, struct timeout *t)
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

bool timeout_find(uint32_t tid, int pagemap_fd,
		  const struct user_regs_struct *regs, struct timeout *ret)
{
	const struct call c = {tid, pagemap_fd, regs};
	struct timeout t = {.result = 0};
	long nr, result;

	if (!arch_interrupted_call(regs, &nr, &result) || !find(&c, nr, &t))
		return false;
	*ret = t;
	return true;
}
