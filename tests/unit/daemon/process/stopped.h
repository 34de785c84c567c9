/*
 * A helper that is stopped in the middle of a function, so that a test can change a process while
 * the function reads it.
 */
#ifndef TESTS_UNIT_DAEMON_PROCESS_STOPPED_H
#define TESTS_UNIT_DAEMON_PROCESS_STOPPED_H

#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* The function: returns 0 or -errno. */
typedef int (*stopped_fn)(const void *ctx);

/* Starts a helper that calls fn, and stops it before this system call, for the first time. */
static inline pid_t stopped_at(stopped_fn fn, const void *ctx, long call)
{
	struct __ptrace_syscall_info info;
	pid_t helper = fork();
	int status;

	if (helper == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 || raise(SIGSTOP) != 0)
			_exit(1);
		_exit(-fn(ctx));
	}
	ck_assert_int_eq(waitpid(helper, &status, 0), helper);
	OK(ptrace(PTRACE_SETOPTIONS, helper, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	do {
		OK(ptrace(PTRACE_SYSCALL, helper, 0, 0));
		ck_assert_int_eq(waitpid(helper, &status, 0), helper);
		ck_assert_msg(WIFSTOPPED(status), "the call was not made: status %x", status);
		ck_assert_int_ge(ptrace(PTRACE_GET_SYSCALL_INFO, helper, sizeof(info), &info), 0);
	} while (info.op != PTRACE_SYSCALL_INFO_ENTRY || info.entry.nr != (uint64_t)call);
	return helper;
}

/* Continues the helper. Returns what fn returns. */
static inline int stopped_result(pid_t helper)
{
	int status;

	OK(ptrace(PTRACE_DETACH, helper, 0, 0));
	ck_assert_int_eq(waitpid(helper, &status, 0), helper);
	ck_assert(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

#endif
