#include "lib/capture/syscalls.h"

#include <errno.h>
#include <sys/syscall.h>

bool syscall_was_waiting(long result)
{
	return result == -EINTR || (result <= RESULT_ERESTARTSYS &&
				    result >= RESULT_ERESTART_RESTARTBLOCK);
}

bool syscall_only_waits(long nr)
{
	switch (nr) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_pselect6:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_rt_sigtimedwait:
	case SYS_semtimedop:
	case SYS_io_getevents:
	case SYS_sched_yield:
	case SYS_futex:
		return true;
	default:
		return false;
	}
}

enum restart_rule syscall_restart_rule(long nr, long result)
{
	if (result == RESULT_ERESTART_RESTARTBLOCK)
		return RESTART_IF_FILTERED;
	/* Starts again by itself, but with its whole time: see rest.h. */
	if (nr == SYS_io_pgetevents && result == RESULT_ERESTARTNOHAND)
		return RESTART_REWRITE;
	if (nr == SYS_bpf && result == -EAGAIN)
		return RESTART_ALONE;
	if (result != -EINTR)
		return RESTART_LEAVE;
	switch (nr) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
		/*
		 * These restart by themselves, but where the kernel cannot
		 * write what is left of the time into the caller's timespec
		 * (fs/select.c).
		 */
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_pselect6:
	case SYS_ppoll:
	/* Only if it has submitted nothing. */
	case SYS_io_uring_enter:
	/* With a timeout (SO_RCVTIMEO, SO_SNDTIMEO) these return EINTR. */
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
		return RESTART_REWRITE;
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_preadv2:
	case SYS_pwritev2:
	case SYS_sendfile:
		return RESTART_IF_SOCKET;
	case SYS_splice:
		return RESTART_IF_EITHER_SOCKET;
	case SYS_ioctl:
		return RESTART_IF_DRAIN;
	case SYS_fallocate:
		return RESTART_ALONE;
	default:
		return RESTART_LEAVE;
	}
}
