#include "lib/capture/syscalls.h"

#include <errno.h>
#include <sys/syscall.h>

bool syscall_was_waiting(long result)
{
	return result == -EINTR || (result <= RESULT_ERESTARTSYS &&
				    result >= RESULT_ERESTART_RESTARTBLOCK);
}

enum restart_rule syscall_restart_rule(long nr, long result)
{
	if (result == RESULT_ERESTART_RESTARTBLOCK)
		return RESTART_IF_FILTERED;
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
		return RESTART_IF_SOCKET;
	default:
		return RESTART_LEAVE;
	}
}
