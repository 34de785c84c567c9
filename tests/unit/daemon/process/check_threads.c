#include "daemon/process/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define PAGE 4096

/* A page that is never filled: a thread that accesses it waits until the process ends. */
static char *missing;
/* -1: this process may not make accesses of the kernel wait. */
static int uffd;

static void make_missing(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range;

	missing = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert(missing != MAP_FAILED);
	range = (struct uffdio_register){
		.range = {.start = (uintptr_t)missing, .len = PAGE},
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0)
		return;
	OK(ioctl(uffd, UFFDIO_API, &api));
	OK(ioctl(uffd, UFFDIO_REGISTER, &range));
}

/* Runs does(of) in a child process. */
static pid_t start(void (*does)(pid_t of), pid_t of)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		does(of);
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	OK(kill(pid, SIGKILL));
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void wait_for(bool (*is)(int32_t pid), pid_t pid)
{
	while (!is(pid))
		(void)poll(NULL, 0, 1);
}

static bool sleeps(int32_t pid)
{
	return !threads_any_runnable(pid);
}

/* Waits until is(pid) returns true, and checks that the other functions return false. */
static void check_only(bool (*is)(int32_t pid), pid_t pid)
{
	wait_for(is, pid);
	ck_assert(threads_any_runnable(pid) == (is == threads_any_runnable));
	ck_assert(threads_any_stopped(pid) == (is == threads_any_stopped));
	ck_assert(threads_any_reading_memory(pid) == (is == threads_any_reading_memory));
}

/* Reads the page of the process of, which is registered with userfaultfd. */
static void read_page(pid_t of)
{
	char byte;
	struct iovec here = {.iov_base = &byte, .iov_len = 1};
	struct iovec there = {.iov_base = missing, .iov_len = 1};

	(void)process_vm_readv(of, &here, 1, &there, 1, 0);
}

static void touch_page(pid_t of)
{
	(void)of;
	make_missing();
	if (uffd >= 0)
		*(volatile char *)missing = 1;
}

static void sleep_on(pid_t of)
{
	(void)of;
	for (;;)
		(void)pause();
}

static void compute(pid_t of)
{
	(void)of;
	for (volatile int i = 0;; i++)
		;
}

TEST(a_thread_that_reads_memory_differs_from_one_that_waits_for_a_page)
{
	pid_t pid;

	make_missing();
	if (uffd < 0) {
		ck_assert_int_eq(errno, EPERM);
		return;
	}
	pid = start(read_page, getpid());
	check_only(threads_any_reading_memory, pid);
	end(pid);
	pid = start(touch_page, 0);
	check_only(sleeps, pid);
	end(pid);
}

TEST(a_stopped_thread_differs_from_a_sleeping_one)
{
	pid_t pid = start(sleep_on, 0);

	check_only(sleeps, pid);
	OK(kill(pid, SIGSTOP));
	check_only(threads_any_stopped, pid);
	end(pid);
}

TEST(a_computing_thread_is_runnable)
{
	pid_t pid = start(compute, 0);

	check_only(threads_any_runnable, pid);
	end(pid);
}
