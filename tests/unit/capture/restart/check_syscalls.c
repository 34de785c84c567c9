#include "lib/capture/restart/syscalls.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "tests/unit/suite.h"

/* Higher than the number of any call on any processor. */
#define CALLS_MAX 1024

static const long rewritten[] = {
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait,     SYS_epoll_pwait2, SYS_semop,	   SYS_semtimedop, SYS_recvfrom,
	SYS_rt_sigtimedwait, SYS_io_getevents, SYS_recvmsg,	   SYS_recvmmsg,   SYS_sendto,
	SYS_sendmsg,	     SYS_sendmmsg,     SYS_accept,	   SYS_accept4,	   SYS_connect,
	SYS_pselect6,	     SYS_ppoll,	       SYS_io_uring_enter,
#ifdef SYS_select
	SYS_select,
#endif
};

/* Calls that can be restarted if the descriptor is a socket. */
static const long by_socket[] = {
	SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_preadv2, SYS_pwritev2, SYS_sendfile,
};

static enum restart_rule rule_of(long nr)
{
	for (size_t i = 0; i < sizeof(rewritten) / sizeof(rewritten[0]); i++)
		if (rewritten[i] == nr)
			return RESTART_REWRITE;
	for (size_t i = 0; i < sizeof(by_socket) / sizeof(by_socket[0]); i++)
		if (by_socket[i] == nr)
			return RESTART_IF_SOCKET;
	if (nr == SYS_splice)
		return RESTART_IF_EITHER_SOCKET;
	if (nr == SYS_io_uring_register)
		return RESTART_IF_QUIESCES;
	if (nr == SYS_fallocate)
		return RESTART_UNDISTURBED;
	return nr == SYS_ioctl ? RESTART_IF_DRAIN : RESTART_LEAVE;
}

/*
 * Other calls must not be changed, close(2) above all: it has released its descriptor when it
 * returns EINTR.
 */
TEST(eintr_is_rewritten_for_the_calls_of_the_list)
{
	for (long nr = 0; nr < CALLS_MAX; nr++)
		ck_assert_msg(syscall_restart_rule(nr, -EINTR) == rule_of(nr), "call %ld", nr);
	ck_assert_int_eq(syscall_restart_rule(SYS_close, -EINTR), RESTART_LEAVE);
}

TEST(other_results_are_not_changed)
{
	for (long nr = 0; nr < CALLS_MAX; nr++)
		for (long result = -600; result < 100; result++)
			if (result != -EINTR && result != RESULT_ERESTART_RESTARTBLOCK &&
			    !(nr == SYS_io_pgetevents && result == RESULT_ERESTARTNOHAND) &&
			    !(nr == SYS_bpf && result == -EAGAIN) &&
			    syscall_restart_rule(nr, result) != RESTART_LEAVE)
				ck_abort_msg("call %ld, %ld", nr, result);
	ck_assert_int_eq(syscall_restart_rule(SYS_io_pgetevents, RESULT_ERESTARTNOHAND),
			 RESTART_REWRITE);
	ck_assert_int_eq(syscall_restart_rule(SYS_bpf, -EAGAIN), RESTART_UNDISTURBED);
}

/* The restart needs restart_syscall(2), which a filter may refuse. */
TEST(a_restart_block_is_rewritten_under_a_filter_only)
{
	for (long nr = 0; nr < CALLS_MAX; nr++)
		ck_assert_int_eq(syscall_restart_rule(nr, RESULT_ERESTART_RESTARTBLOCK),
				 RESTART_IF_FILTERED);
}

TEST(restart_codes_and_eintr_mean_an_interrupted_wait)
{
	for (long result = -600; result < 100; result++)
		ck_assert_int_eq(syscall_was_waiting(result),
				 result == -EINTR || (result >= -516 && result <= -512));
}

static bool futex_waits(int command)
{
	struct arch_regs regs = {0};

#ifdef __x86_64__
	regs.rsi = (unsigned int)command;
#else
	regs.user.regs[1] = (unsigned int)command;
#endif
	return syscall_waits(SYS_futex, &regs);
}

TEST(calls_that_wait_do_little_else)
{
	static const long waits[] = {SYS_epoll_pwait,	  SYS_ppoll, SYS_clock_nanosleep,
				     SYS_rt_sigtimedwait, SYS_fsync, SYS_fdatasync};
	static const long work[] = {SYS_write, SYS_mmap, SYS_pread64, SYS_io_uring_enter};
	const struct arch_regs regs = {0};

	for (size_t i = 0; i < array_size(waits); i++)
		ck_assert_msg(syscall_waits(waits[i], &regs), "call %ld", waits[i]);
	for (size_t i = 0; i < array_size(work); i++)
		ck_assert_msg(!syscall_waits(work[i], &regs), "call %ld", work[i]);
	ck_assert(futex_waits(FUTEX_WAIT_PRIVATE));
	ck_assert(futex_waits(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME));
	ck_assert(!futex_waits(FUTEX_WAKE_PRIVATE));
}
