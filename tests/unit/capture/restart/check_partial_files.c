#include "lib/capture/restart/partial.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/capture/restart/resume.h"
#include "tests/unit/suite.h"

#if defined(__x86_64__)

#include "tests/unit/capture/restart/partial.h"

static const struct {
	long nr;
	/* Which arguments are descriptors; -1: none. */
	int first, second;
} calls[] = {
	{SYS_write, 0, -1},
	{SYS_recvmsg, 0, -1},
	{SYS_splice, 0, 2},
	{SYS_io_getevents, -1, -1},
};

static bool are_the_same(const struct partial_files *f, long nr)
{
	static const uint64_t arguments[6] = {100, 101, 102};
	struct partial p = after(nr, 1, arguments);

	return partial_has_files(f, p.tid, &p.regs, nr);
}

/* Each of three descriptors becomes another pipe, and then the first one again. */
TESTS(a_change_of_any_descriptor_of_the_call_is_noticed, array_size(calls))
{
	static const uint64_t arguments[6] = {100, 101, 102};
	const long nr = calls[_i].nr;
	struct partial p = after(nr, 1, arguments);
	struct partial_files found;
	int here[2], there[2];

	OK(pipe2(here, O_CLOEXEC));
	OK(pipe2(there, O_CLOEXEC));
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(dup2(here[1], 100 + i), 100 + i);
	partial_files(p.tid, &p.regs, nr, &found);
	ck_assert(are_the_same(&found, nr));
	for (int i = 0; i < 3; i++) {
		bool counts = calls[_i].first == i || calls[_i].second == i;

		ck_assert_int_eq(dup2(there[1], 100 + i), 100 + i);
		ck_assert_int_eq(are_the_same(&found, nr), !counts);
		OK(close(100 + i));
		ck_assert_int_eq(are_the_same(&found, nr), !counts);
		ck_assert_int_eq(dup2(here[1], 100 + i), 100 + i);
		ck_assert(are_the_same(&found, nr));
	}
}

#define WHOLE (1 << 20)

static void write_for_ever(int fd)
{
	char *bytes = calloc(1, WHOLE);

	for (;;)
		(void)!write(fd, bytes, WHOLE);
}

/* Starts a traced process that writes to fd and shares the test's descriptors. */
static pid_t start_writer(int fd)
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid == 0)
		write_for_ever(fd);
	ck_assert_int_gt(pid, 0);
	OK(ptrace(PTRACE_SEIZE, pid, NULL, (void *)(uintptr_t)PTRACE_O_TRACESYSGOOD));
	return pid;
}

static void next_stop(struct resume_stop *stop, struct arch_regs *regs)
{
	int status;

	ck_assert_int_eq(waitpid(stop->pid, &status, 0), stop->pid);
	ck_assert(WIFSTOPPED(status));
	stop->at_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
	OK(arch_get_regs(stop->tid, regs));
}

/* Interrupts the process until its call has returned a part. */
static void until_part(struct resume_stop *stop, struct arch_regs *regs)
{
	long nr, result = 0;

	for (;;) {
		OK(ptrace(PTRACE_INTERRUPT, stop->tid, 0, 0));
		next_stop(stop, regs);
		if (arch_interrupted_call(regs, &nr, &result) && nr == SYS_write && result > 0 &&
		    result < WHOLE)
			return;
		OK(ptrace(PTRACE_CONT, stop->tid, 0, 0));
	}
}

/* Runs one part, and interrupts it where it begins to wait. */
static void run_part(struct resumed_call *r, struct resume_stop *stop, struct arch_regs *regs)
{
	stop->interrupted = true;
	for (int i = 0; i < 2; i++) {
		OK(ptrace(PTRACE_SYSCALL, stop->tid, 0, 0));
		if (i == 1)
			OK(ptrace(PTRACE_INTERRUPT, stop->tid, 0, 0));
		next_stop(stop, regs);
		ck_assert(stop->at_call);
		resume_stopped(r, stop, regs);
	}
}

/* The rest must not be written to another file that has the descriptor's number now. */
TEST(the_rest_is_not_written_to_another_file)
{
	struct arch_regs regs;
	struct resumed_call rest = {.state = RESUME_NONE};
	struct resume_stop stop = {.regs = &regs, .goes_on = true};
	int here[2], there[2];
	char path[64];
	long nr, done, result;

	OK(pipe2(here, O_CLOEXEC));
	OK(pipe2(there, O_CLOEXEC));
	stop.pid = start_writer(here[1]);
	stop.tid = (uint32_t)stop.pid;
	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", stop.pid);
	stop.pagemap_fd = open(path, O_RDONLY | O_CLOEXEC);
	until_part(&stop, &regs);
	ck_assert(arch_interrupted_call(&regs, &nr, &done));
	ck_assert(resume_partial(&rest, &stop));
	run_part(&rest, &stop, &regs);
	ck_assert_int_eq(rest.state, RESUME_ENTERING);
	ck_assert_int_eq(dup2(there[1], here[1]), here[1]);
	run_part(&rest, &stop, &regs);
	ck_assert_int_eq(rest.state, RESUME_NONE);
	ck_assert(arch_interrupted_call(&regs, &nr, &result));
	ck_assert_int_eq(nr, SYS_write);
	ck_assert_int_ge(result, done);
	ck_assert_int_lt(result, WHOLE);
	OK(kill(stop.pid, SIGKILL));
	ck_assert_int_eq(waitpid(stop.pid, NULL, 0), stop.pid);
}

#endif
