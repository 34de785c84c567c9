#include "lib/capture/ptrace/tracee.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

bool tracee_signal_stops(int signal)
{
	return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

bool tracee_signal_crashes(int signal)
{
	switch (signal) {
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGSYS:
		return true;
	default:
		return false;
	}
}

bool tracee_signal_dumps(int signal)
{
	switch (signal) {
	case SIGQUIT:
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGXCPU:
	case SIGXFSZ:
	case SIGSYS:
		return true;
	default:
		return false;
	}
}

static pid_t wait_once(pid_t tid, bool blocks, int *ret_status)
{
	/* WEXITED: waitid(2) reports stops of tracees in any case. */
	const int options = WEXITED | WNOWAIT | __WALL | (blocks ? 0 : WNOHANG);
	siginfo_t info = {.si_pid = 0};
	int event;

	if (waitid(tid < 0 ? P_ALL : P_PID, tid < 0 ? 0 : (id_t)tid, &info, options) < 0)
		return -1;
	if (info.si_pid == 0)
		return 0;
	event = info.si_status >> 8;
	/* ptrace(2) fails for a tracee whose PTRACE_EVENT_EXEC was not taken out. */
	if (info.si_code != CLD_TRAPPED || (event != 0 && event != PTRACE_EVENT_STOP))
		return waitpid(info.si_pid, ret_status, __WALL | WNOHANG);
	*ret_status = info.si_status << 8 | 0x7f;
	return info.si_pid;
}

pid_t tracee_wait(pid_t tid, bool blocks, int *ret_status)
{
	pid_t r;

	/* 0, if it blocks: the tracee was killed, and left its stop, between the two calls. */
	do
		r = wait_once(tid, blocks, ret_status);
	while (r == 0 && blocks);
	return r;
}

enum tracee_status tracee_classify(int status, int *ret_signal)
{
	int signal;

	*ret_signal = 0;
	if (!WIFSTOPPED(status))
		return TRACEE_DEAD;
	signal = WSTOPSIG(status);
	switch (status >> 16) {
	case 0:
		if (signal == (SIGTRAP | 0x80))
			return TRACEE_CALL;
		*ret_signal = signal;
		return TRACEE_SIGNAL;
	case PTRACE_EVENT_STOP:
		if (!tracee_signal_stops(signal))
			return TRACEE_TRAP;
		*ret_signal = signal;
		return TRACEE_GROUP_STOP;
	case PTRACE_EVENT_CLONE:
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
		return TRACEE_CLONE;
	case PTRACE_EVENT_EXEC:
		return TRACEE_EXEC;
	case PTRACE_EVENT_EXIT:
		return TRACEE_EXIT;
	default:
		return TRACEE_OTHER;
	}
}
