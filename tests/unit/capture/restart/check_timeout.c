#include "lib/capture/restart/timeout.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

static struct timespec span;
static struct timeval val;
static struct io_uring_getevents_arg enter;

#define SPAN ((uint64_t)(uintptr_t)&span)
#define VAL  ((uint64_t)(uintptr_t)&val)
#define ARG  ((uint64_t)(uintptr_t)&enter)

/* Returns the registers of a thread after a call that failed with EINTR. */
static struct arch_regs regs_after(long nr, const uint64_t arguments[6])
{
#if defined(__x86_64__)
	return (struct arch_regs){
		.orig_rax = (unsigned long long)nr,
		.rax = (unsigned long long)-EINTR,
		.rdi = arguments[0],
		.rsi = arguments[1],
		.rdx = arguments[2],
		.r10 = arguments[3],
		.r8 = arguments[4],
		.r9 = arguments[5],
	};
#else
	struct arch_regs regs = {
		.user.regs[0] = (uint64_t)-EINTR,
		.user.regs[8] = (uint64_t)nr,
		.stopped = ARCH_AFTER_CALL,
	};

	for (int i = 1; i < 6; i++)
		regs.user.regs[i] = arguments[i];
	arch_set_first_argument(&regs, arguments[0]);
	return regs;
#endif
}

/* Finds the timeout of a call of the test's process. */
static bool find(long nr, const uint64_t arguments[6], struct timeout *ret)
{
	const struct arch_regs regs = regs_after(nr, arguments);
	const struct timeout_call c = {
		.pid = getpid(),
		.tid = (uint32_t)getpid(),
		.pagemap_fd = -1,
		.regs = &regs,
	};

	return timeout_find(&c, ret);
}

static void set_up(void)
{
	span = (struct timespec){.tv_sec = 3, .tv_nsec = 7};
	val = (struct timeval){.tv_sec = 3, .tv_usec = 7};
	enter = (struct io_uring_getevents_arg){.ts = SPAN};
}

#define SPAN_NS UINT64_C(3000000007)

FIXTURE(set_up, NULL)

TEST(timeouts_in_milliseconds_are_read)
{
	struct timeout t;

	ck_assert(find(SYS_epoll_pwait, (uint64_t[6]){3, 4, 5, 20, 6, 7}, &t));
	ck_assert_uint_eq(t.ns, 20 * NS_PER_MS);
	ck_assert_int_eq(t.result, 0);
#if defined(SYS_poll)
	ck_assert(find(SYS_epoll_wait, (uint64_t[6]){3, 4, 5, 20}, &t));
	ck_assert_uint_eq(t.ns, 20 * NS_PER_MS);
	ck_assert(find(SYS_poll, (uint64_t[6]){3, 4, INT_MAX}, &t));
	ck_assert_uint_eq(t.ns, INT_MAX * NS_PER_MS);
	/* -1 means no timeout. The upper half of the register does not count. */
	ck_assert(!find(SYS_poll, (uint64_t[6]){3, 4, UINT32_MAX}, &t));
	ck_assert(!find(SYS_poll, (uint64_t[6]){3, 4, UINT64_MAX}, &t));
	ck_assert(find(SYS_poll, (uint64_t[6]){3, 4, UINT64_C(1) << 32 | 9}, &t));
	ck_assert_uint_eq(t.ns, 9 * NS_PER_MS);
#endif
}

/* n: the argument that points to the time */
static const struct {
	long nr;
	unsigned int n;
	long result;
} calls[] = {
	{SYS_epoll_pwait2, 3, 0},
	{SYS_ppoll, 2, 0},
	{SYS_pselect6, 4, 0},
	{SYS_io_getevents, 4, 0},
	{SYS_io_pgetevents, 4, 0},
	{SYS_nanosleep, 0, 0},
	{SYS_clock_nanosleep, 2, 0},
	{SYS_semtimedop, 3, -EAGAIN},
	{SYS_rt_sigtimedwait, 2, -EAGAIN},
	{SYS_futex, 3, -ETIMEDOUT},
};

TESTS(timeouts_in_memory_are_read, array_size(calls))
{
	uint64_t arguments[6] = {0};
	struct timeout t;

	arguments[calls[_i].n] = SPAN;
	ck_assert(find(calls[_i].nr, arguments, &t));
	ck_assert_uint_eq(t.ns, SPAN_NS);
	ck_assert_int_eq(t.result, calls[_i].result);
	span.tv_sec = 0;
	ck_assert(find(calls[_i].nr, arguments, &t));
	ck_assert_uint_eq(t.ns, 7);
	/* A time that the kernel refuses, and one of centuries. */
	span.tv_sec = -1;
	ck_assert(!find(calls[_i].nr, arguments, &t));
	span.tv_sec = INT64_MAX;
	ck_assert(!find(calls[_i].nr, arguments, &t));
	span.tv_sec = 3;
	span.tv_nsec = (long)NS_PER_SEC;
	ck_assert(!find(calls[_i].nr, arguments, &t));
	span.tv_nsec = -1;
	ck_assert(!find(calls[_i].nr, arguments, &t));
	/* A null pointer means no timeout; an invalid address cannot be read. */
	arguments[calls[_i].n] = 0;
	ck_assert(!find(calls[_i].nr, arguments, &t));
	arguments[calls[_i].n] = 8;
	ck_assert(!find(calls[_i].nr, arguments, &t));
}

TEST(a_time_that_the_kernel_has_overwritten_is_the_rest)
{
	struct timeout t;

	ck_assert(find(SYS_nanosleep, (uint64_t[6]){SPAN, SPAN}, &t) && t.is_rest);
	ck_assert(find(SYS_nanosleep, (uint64_t[6]){SPAN, 0}, &t) && !t.is_rest);
	ck_assert(find(SYS_nanosleep, (uint64_t[6]){SPAN, VAL}, &t) && !t.is_rest);
	ck_assert(find(SYS_clock_nanosleep, (uint64_t[6]){CLOCK_MONOTONIC, 0, SPAN, SPAN}, &t));
	ck_assert(t.is_rest);
	ck_assert(find(SYS_clock_nanosleep, (uint64_t[6]){CLOCK_MONOTONIC, 0, SPAN, VAL}, &t));
	ck_assert(!t.is_rest);
	/* ppoll(2) has no such argument: argument 0 points to its descriptors. */
	ck_assert(find(SYS_ppoll, (uint64_t[6]){SPAN, 1, SPAN}, &t) && !t.is_rest);
}

TEST(select_with_sets_has_no_known_timeout)
{
	struct timeout t;

	for (unsigned int i = 1; i <= 3; i++) {
		uint64_t arguments[6] = {9, 0, 0, 0, SPAN};

		arguments[i] = SPAN;
		ck_assert(!find(SYS_pselect6, arguments, &t));
#if defined(SYS_select)
		ck_assert(!find(SYS_select, arguments, &t));
#endif
	}
#if defined(SYS_select)
	ck_assert(find(SYS_select, (uint64_t[6]){9, 0, 0, 0, VAL}, &t));
	ck_assert_uint_eq(t.ns, 3 * NS_PER_SEC + 7 * NS_PER_US);
	val.tv_usec = 1000000;
	ck_assert(!find(SYS_select, (uint64_t[6]){9, 0, 0, 0, VAL}, &t));
#endif
}

TEST(absolute_times_are_no_timeouts)
{
	struct timeout t;

	ck_assert(!find(SYS_clock_nanosleep, (uint64_t[6]){CLOCK_MONOTONIC, TIMER_ABSTIME, SPAN},
			&t));
	ck_assert(!find(SYS_clock_nanosleep, (uint64_t[6]){CLOCK_PROCESS_CPUTIME_ID, 0, SPAN}, &t));
	ck_assert(!find(SYS_futex, (uint64_t[6]){8, FUTEX_WAIT_BITSET, 0, SPAN}, &t));
	ck_assert(!find(SYS_futex, (uint64_t[6]){8, FUTEX_LOCK_PI, 0, SPAN}, &t));
	ck_assert(find(SYS_futex, (uint64_t[6]){8, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, SPAN}, &t));
}

TEST(timeouts_of_io_uring_are_read)
{
	const uint64_t flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
	struct timeout t;

	ck_assert(find(SYS_io_uring_enter, (uint64_t[6]){3, 0, 1, flags, ARG, sizeof(enter)}, &t));
	ck_assert_uint_eq(t.ns, SPAN_NS);
	ck_assert_int_eq(t.result, -ETIME);
	ck_assert(!find(SYS_io_uring_enter, (uint64_t[6]){3, 0, 1, IORING_ENTER_GETEVENTS, ARG, 8},
			&t));
	/* Flags for an absolute time, and for a registered timeout. */
	for (unsigned int bit = 5; bit <= 6; bit++)
		ck_assert(!find(SYS_io_uring_enter,
				(uint64_t[6]){3, 0, 1, flags | 1u << bit, ARG, sizeof(enter)}, &t));
	enter.ts = 0;
	ck_assert(!find(SYS_io_uring_enter, (uint64_t[6]){3, 0, 1, flags, ARG, sizeof(enter)}, &t));
}

TEST(other_calls_have_no_timeout)
{
	struct timeout t;

	ck_assert(!find(SYS_getpid, (uint64_t[6]){0}, &t));
	ck_assert(!find(SYS_semop, (uint64_t[6]){1, SPAN, 1, SPAN}, &t));
	ck_assert(!find(-1, (uint64_t[6]){SPAN, SPAN, SPAN, SPAN, SPAN}, &t));
}
