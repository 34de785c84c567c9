#include "lib/capture/restart/timeout.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/capture/proc/descriptor.h"
#include "lib/capture/proc/memory.h"
#include "lib/capture/restart/syscalls.h"

/* Flags of io_uring_enter(2), Linux 6.12 and 6.13. */
#define ENTER_ABS_TIMER	  (1u << 5)
#define ENTER_EXT_ARG_REG (1u << 6)

static bool read_all(const struct timeout_call *c, uint64_t addr, void *to, size_t size)
{
	return memory_read(c->pagemap_fd, NULL, (int32_t)c->tid, addr, to, size, 0) ==
	       (ssize_t)size;
}

/* Reads an int of milliseconds. Returns false if it is negative: no timeout. */
static bool milliseconds(uint64_t argument, uint64_t *ret)
{
	const int32_t ms = (int32_t)(uint32_t)argument;

	if (ms < 0)
		return false;
	*ret = (uint64_t)ms * NS_PER_MS;
	return true;
}

/*
 * Reads a timespec, or a timeval, whose second member has this unit. An address of NULL: no
 * timeout.
 */
static bool seconds_at(const struct timeout_call *c, uint64_t addr, uint64_t unit_ns, uint64_t *ret)
{
	struct timespec t;

	return addr != 0 && read_all(c, addr, &t, sizeof(t)) &&
	       clock_duration_ns(t.tv_sec, t.tv_nsec, unit_ns, ret);
}

/* addr is the address of the struct io_uring_getevents_arg. */
static bool of_io_uring(const struct timeout_call *c, uint64_t addr, uint64_t *ret)
{
	const uint64_t flags = arch_argument(c->regs, 3);
	struct io_uring_getevents_arg arg;

	return (flags & IORING_ENTER_EXT_ARG) != 0 &&
	       (flags & (ENTER_ABS_TIMER | ENTER_EXT_ARG_REG)) == 0 &&
	       read_all(c, addr, &arg, sizeof(arg)) && seconds_at(c, arg.ts, 1, ret);
}

static bool find(const struct timeout_call *c, const struct syscall_timeout *t, uint64_t *ret)
{
	const uint64_t argument = arch_argument(c->regs, t->argument);

	if (t->applies != NULL && !t->applies(c->regs))
		return false;
	switch (t->kind) {
	case TIME_NONE:
		break;
	case TIME_MS:
		return milliseconds(argument, ret);
	case TIME_TIMESPEC:
		return seconds_at(c, argument, 1, ret);
	case TIME_TIMEVAL:
		return seconds_at(c, argument, NS_PER_US, ret);
	case TIME_URING:
		return of_io_uring(c, argument, ret);
	}
	return false;
}

/*
 * Returns true if the kernel has written what is left of the timeout over the timeout itself, as in
 * sleep(3), which calls nanosleep(&t, &t) (nanosleep_copyout() in kernel/time/hrtimer.c).
 */
static bool is_overwritten(const struct timeout_call *c, const struct syscall_timeout *t)
{
	return t->rest != 0 &&
	       arch_argument(c->regs, t->rest) == arch_argument(c->regs, t->argument);
}

/*
 * Finds the timeout of the call's socket: see timeout_of_socket. AF_UNIX sends in pieces of 32 KiB
 * (net/unix/af_unix.c).
 */
static int of_socket(const struct timeout_call *c, const struct syscall_rule *rule,
		     struct timeout *ret)
{
	const bool sends = rule->socket == SOCKET_SENDS;
	struct descriptor_socket s;
	uint64_t ns;
	int r;

	if (rule->socket == SOCKET_NONE)
		return -ENOTSOCK;
	r = descriptor_socket(c->pid, c->tid, arch_argument(c->regs, 0), &s);
	if (r < 0)
		return r;
	ns = sends ? s.send_ns : s.receive_ns;
	if (ns == 0)
		return 0;
	*ret = (struct timeout){
		.ns = ns,
		.result = rule->timeout.result != 0 && !s.is_unix ? rule->timeout.result : -EAGAIN,
		.by_piece = rule->by_piece || (sends && s.is_unix)};
	return 1;
}

int timeout_of_socket(const struct timeout_call *c, struct timeout *ret)
{
	long nr, result;

	return arch_interrupted_call(c->regs, &nr, &result) ? of_socket(c, syscall_rule(nr), ret)
							    : -ENOTSOCK;
}

bool timeout_find(const struct timeout_call *c, struct timeout *ret)
{
	const struct syscall_rule *rule;
	struct timeout t;
	long nr, result;

	if (!arch_interrupted_call(c->regs, &nr, &result))
		return false;
	rule = syscall_rule(nr);
	if (rule->starts_again)
		return false;
	if (of_socket(c, rule, &t) != 1) {
		t = (struct timeout){.result = rule->timeout.result};
		if (!find(c, &rule->timeout, &t.ns))
			return false;
		t.is_rest = is_overwritten(c, &rule->timeout);
	}
	*ret = t;
	return true;
}
