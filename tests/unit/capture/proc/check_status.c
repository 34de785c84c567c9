#include "lib/capture/proc/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "tests/unit/suite.h"

/*
 * The functions read the state of the test's process. Check runs each test in a process of its own.
 */
static uint32_t self(void)
{
	return (uint32_t)getpid();
}

static void on_signal(int number)
{
	(void)number;
}

static void check_signal(int number, void (*handler)(int), bool goes_unnoticed, bool is_ignored)
{
	ck_assert(signal(number, handler) != SIG_ERR);
	ck_assert_int_eq(status_goes_unnoticed(self(), number), goes_unnoticed);
	ck_assert_int_eq(status_ignores(self(), number), is_ignored);
	ck_assert_int_eq(status_has_default_action(self(), number), handler == SIG_DFL);
}

/* Signals whose default action is to ignore them (signal(7)). */
static const int ignored_by_default[] = {SIGCHLD, SIGCONT, SIGURG, SIGWINCH};

TESTS(default_that_is_to_do_nothing, array_size(ignored_by_default))
{
	const int number = ignored_by_default[_i];

	check_signal(number, SIG_DFL, true, false);
	check_signal(number, on_signal, false, false);
	check_signal(number, SIG_IGN, true, true);
}

/* Other signals: the first, the last, a neighbour of an ignored one, and one that stops. */
static const int others[] = {SIGHUP, SIGUSR1, SIGPIPE, SIGTSTP, 64};

TESTS(default_that_does_something, array_size(others))
{
	const int number = others[_i];

	check_signal(number, SIG_DFL, false, false);
	check_signal(number, SIG_IGN, true, true);
	check_signal(number, on_signal, false, false);
}

static void install_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = 1, .filter = code};

	OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	OK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

TEST(filters)
{
	ck_assert(!status_is_filtered(self()));
	install_filter();
	ck_assert(status_is_filtered(self()));
}

static const size_t group_counts[] = {100, 400, 800, 1200, NGROUPS_MAX};

/* The groups are on one line before the fields that are read. */
TESTS(many_groups, array_size(group_counts))
{
	static gid_t groups[NGROUPS_MAX];

	for (size_t i = 0; i < array_size(groups); i++)
		groups[i] = (gid_t)(1000000000 + i);
	/* Only root may set groups. */
	if (setgroups(group_counts[_i], groups) < 0) {
		ck_assert_int_eq(errno, EPERM);
		return;
	}
	ck_assert(!status_is_filtered(self()));
	ck_assert(!status_dumps_core(self()));
	ck_assert(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	ck_assert(status_ignores(self(), SIGUSR1));
	install_filter();
	ck_assert(status_is_filtered(self()));
}

TEST(strict_mode)
{
	int to_child[2], from_child[2];
	char byte = 0;
	pid_t child;

	OK(pipe2(to_child, O_CLOEXEC));
	OK(pipe2(from_child, O_CLOEXEC));
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0) == 0)
			(void)!write(from_child[1], &byte, 1);
		(void)!read(to_child[0], &byte, 1);
		(void)syscall(SYS_exit, 0);
	}
	ck_assert_int_eq(read(from_child[0], &byte, 1), 1);
	ck_assert(status_is_filtered((uint32_t)child));
	ck_assert_int_eq(write(to_child[1], &byte, 1), 1);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

/*
 * The process chooses its name, which precedes all fields that are read. The kernel writes a
 * newline in it as two characters.
 */
TEST(a_name_is_no_field)
{
	ck_assert(signal(SIGUSR1, SIG_DFL) != SIG_ERR);
	OK(prctl(PR_SET_NAME, "\nSeccomp:\t2", 0, 0, 0));
	ck_assert(!status_is_filtered(self()));
	OK(prctl(PR_SET_NAME, "\nSigIgn:\tffff", 0, 0, 0));
	ck_assert(!status_ignores(self(), SIGUSR1));
}

/*
 * Checks a pending signal that the process has blocked, and one that it has not. The process is
 * stopped, so that it does not take the signal.
 */
TEST(pending_signals)
{
	int status;
	pid_t child = fork();
	sigset_t set;

	ck_assert_int_ge(child, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (child == 0) {
		(void)sigprocmask(SIG_BLOCK, &set, NULL);
		(void)raise(SIGSTOP);
		_exit(1);
	}
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	ck_assert(!status_has_pending((uint32_t)child));
	OK(kill(child, SIGUSR1));
	ck_assert(!status_has_pending((uint32_t)child));
	OK(syscall(SYS_tgkill, child, child, SIGUSR2));
	ck_assert(status_has_pending((uint32_t)child));
	OK(kill(child, SIGKILL));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(!status_has_pending((uint32_t)child));
}

/* For a process that is gone the results are those by which capture changes less. */
TEST(a_thread_that_does_not_exist_gets_the_default_answers)
{
	ck_assert(status_is_filtered(0));
	ck_assert(!status_ignores(0, SIGCHLD));
	ck_assert(!status_goes_unnoticed(0, SIGCHLD));
}

/* A thread is not a worker by its name alone. */
TEST(no_worker)
{
	ck_assert_int_eq(status_is_worker(self()), PROC_NO);
	OK(prctl(PR_SET_NAME, "iou-wrk-1"));
	ck_assert_int_eq(status_is_worker(self()), PROC_NO);
	/* The process has the flag PF_FORKNOEXEC, which no worker has. */
	OK(prctl(PR_SET_NAME, "iou) S 1 1 1 0 -1"));
	ck_assert_int_eq(status_is_worker(self()), PROC_NO);
	ck_assert_int_eq(status_is_worker(UINT32_MAX), PROC_NO);
}

/* Without a descriptor the answer is unknown, and the caller asks again later. */
TEST(no_descriptor_is_no_answer)
{
	struct rlimit before, none;

	ck_assert_int_eq(status_dumps_core(self()), PROC_NO);
	ck_assert_int_eq(status_dumps_core(0), PROC_NO);
	OK(getrlimit(RLIMIT_NOFILE, &before));
	none = before;
	none.rlim_cur = 0;
	OK(setrlimit(RLIMIT_NOFILE, &none));
	ck_assert_int_eq(status_is_worker(self()), PROC_UNKNOWN);
	ck_assert_int_eq(status_dumps_core(self()), PROC_UNKNOWN);
	/* The sanitizers open files when the process exits. */
	OK(setrlimit(RLIMIT_NOFILE, &before));
}

/* The kernel makes a worker for a request with IOSQE_ASYNC. */
TEST(worker)
{
	struct io_uring_params p = {0};
	const int fd = (int)syscall(SYS_io_uring_setup, 1, &p);
	uint8_t *ring;
	struct io_uring_sqe *sqe;
	char path[64];
	DIR *dir;
	struct dirent *entry;
	size_t n = 0;

	if (fd < 0)
		return;
	ring = mmap(NULL, p.sq_off.array + sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    IORING_OFF_SQ_RING);
	sqe = mmap(NULL, sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	ck_assert_ptr_ne(ring, MAP_FAILED);
	ck_assert_ptr_ne(sqe, MAP_FAILED);
	*sqe = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .flags = IOSQE_ASYNC};
	__atomic_store_n((uint32_t *)(void *)(ring + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	/* When the request is done, the process has a worker. */
	ck_assert_int_eq(syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
	(void)snprintf(path, sizeof(path), "/proc/%u/task", self());
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL)
		n += entry->d_name[0] != '.' &&
		     status_is_worker((uint32_t)strtoul(entry->d_name, NULL, 10)) == PROC_YES;
	ck_assert_uint_ge(n, 1);
	(void)closedir(dir);
}
