#include "lib/capture/ptrace/tracee.h"

#include <signal.h>
#include <sys/ptrace.h>

#include "tests/unit/suite.h"

/* A status of waitpid(2): a stop with this signal and this ptrace event. */
#define STOPPED(event, signal) ((event) << 16 | (signal) << 8 | 0x7f)

#define EXITED(code)   ((code) << 8)
#define KILLED(signal) (signal)

static const struct {
	int status;
	enum tracee_status want;
	int want_signal;
} statuses[] = {
	{EXITED(0), TRACEE_DEAD, 0},
	{EXITED(255), TRACEE_DEAD, 0},
	{KILLED(SIGKILL), TRACEE_DEAD, 0},
	{KILLED(SIGSEGV | 0x80), TRACEE_DEAD, 0},
	/* Signal-delivery-stops of all signals, including those that stop the process. */
	{STOPPED(0, SIGUSR1), TRACEE_SIGNAL, SIGUSR1},
	{STOPPED(0, SIGTRAP), TRACEE_SIGNAL, SIGTRAP},
	{STOPPED(0, SIGSTOP), TRACEE_SIGNAL, SIGSTOP},
	{STOPPED(0, SIGCONT), TRACEE_SIGNAL, SIGCONT},
	{STOPPED(0, 64), TRACEE_SIGNAL, 64},
	{STOPPED(0, SIGTRAP | 0x80), TRACEE_CALL, 0},
	{STOPPED(PTRACE_EVENT_STOP, SIGTRAP), TRACEE_TRAP, 0},
	{STOPPED(PTRACE_EVENT_STOP, SIGSTOP), TRACEE_GROUP_STOP, SIGSTOP},
	{STOPPED(PTRACE_EVENT_STOP, SIGTSTP), TRACEE_GROUP_STOP, SIGTSTP},
	{STOPPED(PTRACE_EVENT_STOP, SIGTTIN), TRACEE_GROUP_STOP, SIGTTIN},
	{STOPPED(PTRACE_EVENT_STOP, SIGTTOU), TRACEE_GROUP_STOP, SIGTTOU},
	{STOPPED(PTRACE_EVENT_CLONE, SIGTRAP), TRACEE_CLONE, 0},
	{STOPPED(PTRACE_EVENT_EXEC, SIGTRAP), TRACEE_EXEC, 0},
	{STOPPED(PTRACE_EVENT_FORK, SIGTRAP), TRACEE_CLONE, 0},
	{STOPPED(PTRACE_EVENT_VFORK_DONE, SIGTRAP), TRACEE_OTHER, 0},
	{STOPPED(PTRACE_EVENT_EXIT, SIGTRAP), TRACEE_EXIT, 0},
	{STOPPED(PTRACE_EVENT_SECCOMP, SIGTRAP), TRACEE_OTHER, 0},
};

TESTS(classifies, array_size(statuses))
{
	int signal = -1;

	ck_assert_int_eq(tracee_classify(statuses[_i].status, &signal), statuses[_i].want);
	ck_assert_int_eq(signal, statuses[_i].want_signal);
}

TEST(four_signals_stop)
{
	for (int signal = 1; signal <= 64; signal++)
		ck_assert_int_eq(tracee_signal_stops(signal),
				 signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
					 signal == SIGTTOU);
}

/* The signals with the action "Core" in signal(7). SIGIOT is SIGABRT. */
TEST(ten_signals_dump)
{
	static const int core[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
				   SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
	uint64_t set = 0;

	for (size_t i = 0; i < sizeof(core) / sizeof(core[0]); i++)
		set |= UINT64_C(1) << core[i];
	for (int signal = 1; signal < 64; signal++)
		ck_assert_int_eq(tracee_signal_dumps(signal), set >> signal & 1);
}
