#include "daemon/process/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
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

static void *sleep_in_thread(void *ctx)
{
	int32_t *tid = ctx;

	__atomic_store_n(tid, (int32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	for (;;)
		(void)pause();
	return NULL;
}

/* Shared memory, in which a tracer says whether it could attach: 1 or -1. */
static int *is_traced;

static void trace(pid_t of)
{
	__atomic_store_n(is_traced, ptrace(PTRACE_SEIZE, of, NULL, NULL) == 0 ? 1 : -1,
			 __ATOMIC_SEQ_CST);
	sleep_on(0);
}

/* Starts a process that traces the thread, and returns its pid when it does. */
static pid_t start_tracer(int32_t tid)
{
	pid_t pid;

	*is_traced = 0;
	pid = start(trace, tid);
	while (__atomic_load_n(is_traced, __ATOMIC_SEQ_CST) == 0)
		(void)poll(NULL, 0, 1);
	ck_assert_int_eq(*is_traced, 1);
	return pid;
}

/* The threads of this process are the test, which any process may trace. */
TEST(the_tracers_of_all_threads_are_found)
{
	struct threads_tracers found;
	int32_t tids[2] = {0};
	pthread_t threads[2];
	pid_t first, second;

	is_traced = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(is_traced != MAP_FAILED);
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	for (size_t k = 0; k < 2; k++) {
		OK(pthread_create(&threads[k], NULL, sleep_in_thread, &tids[k]));
		while (__atomic_load_n(&tids[k], __ATOMIC_SEQ_CST) == 0)
			(void)poll(NULL, 0, 1);
	}
	ck_assert_uint_eq(threads_find_tracers(getpid(), 1, &found), 3);
	ck_assert_int_eq(found.traced_by_ours, 0);
	ck_assert_int_eq(found.other, 0);
	first = start_tracer(tids[0]);
	ck_assert_uint_eq(threads_find_tracers(getpid(), 1, &found), 3);
	ck_assert_int_eq(found.traced_by_ours, 0);
	ck_assert_int_eq(found.other, first);
	second = start_tracer(tids[1]);
	ck_assert_uint_gt(threads_find_tracers(getpid(), second, &found), 1);
	ck_assert_int_eq(found.traced_by_ours, tids[1]);
	(void)threads_find_tracers(getpid(), first, &found);
	ck_assert_int_eq(found.traced_by_ours, tids[0]);
	end(first);
	end(second);
}

TEST(a_process_that_has_ended_has_no_threads)
{
	pid_t pid = start(sleep_on, 0);
	struct threads_tracers found;

	end(pid);
	ck_assert_uint_eq(threads_find_tracers(pid, 1, &found), 0);
	ck_assert_int_eq(found.other, 0);
}
