#include "lib/capture/restart/repair.h"

#include <linux/bpf.h>
#include <linux/falloc.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/capture/proc/descriptor.h"
#include "lib/capture/proc/status.h"
#include "lib/capture/ptrace/tracee.h"
#include "lib/capture/restart/syscalls.h"

/*
 * Returns true for an ioctl of a terminal that first waits until output is sent, and that has had
 * no effect if the wait was interrupted (tty_ioctl() in drivers/tty/tty_io.c). A break of a given
 * length, tcsendbreak(3), may have begun already, except on a pseudoterminal, which has none.
 */
static bool is_drain(uint32_t tid, const struct arch_regs *regs)
{
	switch ((unsigned int)arch_argument(regs, 1)) {
	case TIOCSBRK:
	case TIOCSETD:
		return true;
	case TCSBRK: /* with an argument other than 0: tcdrain(3) */
		if (arch_argument(regs, 2) != 0)
			return true;
		return descriptor_is_pty(tid, arch_argument(regs, 0));
	case TCSBRKP:
		return descriptor_is_pty(tid, arch_argument(regs, 0));
	default:
		return false;
	}
}

/* Values of linux/io_uring.h that old headers lack. */
#define REGISTER_SYNC_CANCEL	     24U
#define REGISTER_USE_REGISTERED_RING (1U << 31)

/*
 * Returns true if an io_uring_register(2) that returned EINTR has had no effect: an operation that
 * waits for requests in flight takes everything back when it is interrupted. Not so
 * IORING_REGISTER_SYNC_CANCEL, which may have cancelled the request: a second one would not find
 * it.
 */
static bool has_only_waited(const struct arch_regs *regs)
{
	const unsigned int operation = (unsigned int)arch_argument(regs, 1);

	return (operation & ~REGISTER_USE_REGISTERED_RING) != REGISTER_SYNC_CANCEL;
}

/*
 * Returns true if the call can be repeated from its start. The check of a bpf program has made
 * nothing when it gives up (kernel/bpf/verifier.c). Memory that fallocate(2) has allocated may be
 * kept or not (hugetlbfs, tmpfs before Linux 6.11), and is not allocated twice. The other modes of
 * fallocate(2) move the content of the file, so they cannot be repeated.
 */
static bool may_begin_anew(const struct arch_regs *regs, long nr)
{
	if (nr == SYS_bpf)
		return (unsigned int)arch_argument(regs, 0) == BPF_PROG_LOAD;
	return ((unsigned int)arch_argument(regs, 1) & ~(unsigned int)FALLOC_FL_KEEP_SIZE) == 0;
}

bool repair_needs_undisturbed(const struct arch_regs *regs)
{
	long nr, result;

	return arch_interrupted_call(regs, &nr, &result) && arch_knows_arguments(regs) &&
	       syscall_restart_rule(nr, result) == RESTART_UNDISTURBED && may_begin_anew(regs, nr);
}

bool repair_is_due(uint32_t tid, const struct arch_regs *regs, int signal)
{
	bool rewrite = false;
	long nr, result;

	if (!arch_interrupted_call(regs, &nr, &result) || !arch_knows_arguments(regs))
		return false;
	switch (syscall_restart_rule(nr, result)) {
	case RESTART_LEAVE:
	case RESTART_UNDISTURBED:
		break;
	case RESTART_REWRITE:
		rewrite = true;
		break;
	case RESTART_IF_SOCKET:
		rewrite = descriptor_is_socket(tid, arch_argument(regs, 0));
		break;
	case RESTART_IF_EITHER_SOCKET:
		rewrite = descriptor_is_socket(tid, arch_argument(regs, 0)) ||
			  descriptor_is_socket(tid, arch_argument(regs, 2));
		break;
	case RESTART_IF_DRAIN:
		rewrite = is_drain(tid, regs);
		break;
	case RESTART_IF_QUIESCES:
		rewrite = has_only_waited(regs);
		break;
	case RESTART_IF_FILTERED:
		rewrite = status_is_filtered(tid);
		break;
	}
	if (rewrite && tracee_signal_stops(signal))
		rewrite = status_ignores(tid, signal);
	return rewrite;
}

bool repair_call(uint32_t tid, const struct arch_regs *regs, int signal)
{
	return repair_is_due(tid, regs, signal) && arch_set_result(tid, RESULT_ERESTARTNOHAND) == 0;
}

/* With these flags the call waits for no message, or for the first one only. */
#define NO_LONG_WAIT (MSG_DONTWAIT | MSG_WAITFORONE)

void repair_socket(int32_t pid, uint32_t tid, const struct arch_regs *regs)
{
	long nr, result;

	if (arch_interrupted_call(regs, &nr, &result) && arch_knows_arguments(regs) &&
	    nr == SYS_recvmmsg && result > 0 &&
	    (uint64_t)result < (arch_argument(regs, 2) & UINT32_MAX) &&
	    (arch_argument(regs, 3) & NO_LONG_WAIT) == 0)
		descriptor_clear_error(pid, tid, arch_argument(regs, 0));
}
