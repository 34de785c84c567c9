/* What a target sees if its tracer is killed. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/capture/capture.h"
#include "tests/unit/capture/live.h"
#include "tests/unit/suite.h"

static int pipe_fds[2];

static void on_signal(int signal)
{
	const char byte = (char)signal;

	(void)!write(pipe_fds[1], &byte, 1);
}

static pid_t start_target(void)
{
	pid_t pid;

	OK(pipe(pipe_fds));
	ck_assert(signal(SIGUSR2, on_signal) != SIG_ERR);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	while (pid == 0)
		(void)pause();
	return pid;
}

/* The calling process is killed as soon as it calls ptrace(2) to continue a thread with SIGUSR2. */
static bool dies_at_delivery(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SIGUSR2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = array_size(code), .filter = code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

__attribute__((noreturn)) static void trace(pid_t target, int ready_fd)
{
	struct live l = {
		.pid = target,
		.pidfd = (int)syscall(SYS_pidfd_open, target, 0),
		.in = -1,
		.out = -1,
	};

	live_open(&l, 1u << 20);
	live_attach(&l);
	if (!dies_at_delivery() || write(ready_fd, "", 1) != 1)
		_exit(1);
	for (;;)
		live_wait(&l);
}

TEST(a_signal_arrives_if_the_tracer_is_killed_before_it_passes_the_signal_on)
{
	const pid_t target = start_target();
	int ready[2], status;
	pid_t tracer;
	char byte;

	OK(pipe(ready));
	tracer = fork();
	ck_assert_int_ge(tracer, 0);
	if (tracer == 0)
		trace(target, ready[1]);
	close_fd(&ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	OK(kill(target, SIGUSR2));
	ck_assert_int_eq(waitpid(tracer, &status, 0), tracer);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	close_fd(&pipe_fds[1]);
	/* Without the signal, the target would end with nothing in the pipe. */
	live_until_state(NULL, target, 'S');
	OK(kill(target, SIGKILL));
	ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
	ck_assert_int_eq(byte, SIGUSR2);
	ck_assert_int_eq(waitpid(target, NULL, 0), target);
	close_fd(&pipe_fds[0]);
	close_fd(&ready[0]);
}
