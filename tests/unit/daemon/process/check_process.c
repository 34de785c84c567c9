/* What process_look() says of this process when descriptors are short, and of other pids. */
#include "daemon/process/process.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/daemon/full.h"
#include "tests/unit/suite.h"

static struct process process;

/* The error of pidfd_open(2); 0: none. */
static int pidfd_error;

/* In place of that of libc, by which process_look() calls pidfd_open(2). */
long syscall(long number, ...)
{
	va_list arguments;
	pid_t pid;

	ck_assert_int_eq(number, SYS_pidfd_open);
	va_start(arguments, number);
	pid = va_arg(arguments, pid_t);
	va_end(arguments);
	if (pidfd_error == 0)
		return pidfd_open(pid, 0);
	errno = pidfd_error;
	return -1;
}

FIXTURE(NULL, NULL)

TEST(a_process_is_read)
{
	ck_assert_int_eq(process_look(getpid(), &process), PROCESS_OK);
	ck_assert_int_eq(process.parent, getppid());
	ck_assert_uint_eq(process.uid, geteuid());
	ck_assert(process_is_alive(process.pidfd));
	close_fd(&process.pidfd);
	ck_assert_int_eq(process_look(INT32_MAX, &process), PROCESS_GONE);
	ck_assert_int_eq(process.pidfd, -1);
}

/* With hidepid=2 a user does not see that /proc has another user's process. */
TEST(a_hidden_process_is_not_gone)
{
	/* Only root is permitted to mount. */
	if (geteuid() != 0)
		return;
	OK(unshare(CLONE_NEWNS));
	OK(mount(NULL, "/proc", NULL, MS_PRIVATE | MS_REC, NULL));
	OK(mount("proc", "/proc", "proc", 0, "hidepid=2"));
	OK(setgid(65534));
	OK(setuid(65534));
	ck_assert_int_eq(process_look(getppid(), &process), PROCESS_UNREADABLE);
	ck_assert_int_eq(process.pidfd, -1);
	ck_assert_int_eq(process_look(INT32_MAX, &process), PROCESS_GONE);
}

/* For the pidfd, or for the files in /proc: the process is not gone. */
TESTS(a_shortage_is_no_fault_of_the_process, 2)
{
	struct full full;
	enum process_fault fault;

	full_but(&full, _i);
	fault = process_look(getpid(), &process);
	full_end(&full);
	ck_assert_int_eq(fault, PROCESS_SHORTAGE);
	ck_assert_int_eq(process.pidfd, -1);
}

TESTS(a_shortage_of_the_kernel_is_no_fault_of_the_process, 2)
{
	pidfd_error = (const int[]){ENFILE, ENOMEM}[_i];
	ck_assert_int_eq(process_look(getpid(), &process), PROCESS_SHORTAGE);
	pidfd_error = EPERM;
	ck_assert_int_eq(process_look(getpid(), &process), PROCESS_UNREADABLE);
}

/* The uids of a child: those of root, and one that another user has chosen. */
TEST(a_process_is_of_root_or_the_user_by_all_its_uids)
{
	static const struct {
		uint32_t real, effective, saved;
		bool is_of_root, is_of_1000;
	} v[] = {
		{0, 0, 0, true, true},
		{1000, 1000, 1000, false, true},
		{0, 1000, 0, false, true},  /* seteuid(2) of a service */
		{1001, 0, 0, false, false}, /* a set-user-ID program that 1001 has started */
		{1001, 1000, 1000, false, false},
		{1000, 0, 0, false, true},
	};

	if (geteuid() != 0)
		return;
	for (size_t k = 0; k < array_size(v); k++) {
		int pair[2];
		char byte;
		pid_t pid;

		OK(pipe(pair));
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (setresuid(v[k].real, v[k].effective, v[k].saved) < 0 ||
			    write(pair[1], "", 1) != 1)
				_exit(1);
			for (;;)
				(void)pause();
		}
		close_fd(&pair[1]);
		ck_assert_int_eq(read(pair[0], &byte, 1), 1);
		close_fd(&pair[0]);
		ck_assert_int_eq(process_is_of(pid, 0), v[k].is_of_root);
		ck_assert_int_eq(process_is_of(pid, 1000), v[k].is_of_1000);
		OK(kill(pid, SIGKILL));
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert(!process_is_of(pid, 1000));
	}
}
