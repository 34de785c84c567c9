#include "daemon/common/sandbox.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* In the arguments of a call: stand for the pid of the parent process, and for write_dir. */
#define PARENT	  LONG_MIN
#define DIRECTORY (LONG_MIN + 1)

#define POINTER(p) ((long)(uintptr_t)(p))

/* A system call that is made without libc's wrapper; or a function. */
struct attempt {
	const char *name;
	int capture, unwind, ship; /* the result in each sandbox: 0 or an errno */
	int (*function)(void);
	long number, arguments[4];
};

/* The directory in which SANDBOX_SHIP may write, and a path outside of it. */
static int write_dir = -1;
static pid_t parent; /* getppid(2) is not allowed */
static char elsewhere[64];

static char result[256]; /* memory to which calls write */

static int try(const struct attempt *a)
{
	long v[4];

	if (a->function != NULL)
		return a->function();
	for (size_t i = 0; i < array_size(v); i++)
		v[i] = a->arguments[i] == PARENT      ? parent
		       : a->arguments[i] == DIRECTORY ? write_dir
						      : a->arguments[i];
	return syscall(a->number, v[0], v[1], v[2], v[3], 0L, 0L) < 0 ? errno : 0;
}

static int socket_udp6(void)
{
	/* EAFNOSUPPORT: the filter permits the call, and the kernel has no IPv6. */
	return socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0) < 0 && errno != EAFNOSUPPORT ? errno
											    : 0;
}

static int signal_itself(void)
{
	return syscall(SYS_tgkill, getpid(), getpid(), 0) < 0 ? errno : 0;
}

static int map_memory(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED				? errno
	       : mprotect(p, 4096, PROT_READ) < 0	? errno
	       : mremap(p, 4096, 8192, 1) == MAP_FAILED ? errno
							: 0;
}

static int map_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? errno : 0;
}

static int make_sealed_file(void)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char byte;

	if (fd < 0 || ftruncate(fd, 1) < 0 || pread(fd, &byte, 1, 0) != 1 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 || fcntl(fd, F_GET_SEALS) != F_SEAL_WRITE ||
	    close(fd) < 0)
		return errno;
	return 0;
}

/* Standard output is a terminal here, about which stdio makes further calls. */
static int write_to_stream(void)
{
	FILE *f = fdopen(STDOUT_FILENO, "w");

	if (f == NULL || fprintf(f, "%d", 1) != 1 || fclose(f) != 0)
		return errno;
	return 0;
}

static int compare_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The array is so large that glibc's qsort calls sysinfo(2). */
static int sort(void)
{
	size_t n = 100000;
	int *numbers = calloc(n, sizeof(*numbers));

	if (numbers == NULL)
		return errno;
	for (size_t i = 0; i < n; i++)
		numbers[i] = (int)((i * 7919) % n);
	qsort(numbers, n, sizeof(*numbers), compare_int);
	return numbers[1] == 1 ? 0 : EINVAL;
}

/* clang-format off */
#define FUNCTION(of, by_capture, by_unwind, by_ship) \
	{.name = #of, .capture = by_capture, .unwind = by_unwind, .ship = by_ship, \
	 .function = of}
#define CALL(of, by_capture, by_unwind, by_ship, nr, ...) \
	{.name = of, .capture = by_capture, .unwind = by_unwind, .ship = by_ship, \
	 .number = nr, .arguments = {__VA_ARGS__}}
/* clang-format on */

/*
 * ENOSYS: a filter that kills kills the process at this call. Without a sandbox no call of this
 * table fails with ENOSYS.
 */
static const struct attempt attempts[] = {
	CALL("perf_event_open", ENOSYS, ENOSYS, ENOSYS, SYS_perf_event_open, 0, 0, -1, -1),
	CALL("start_perf_event", ENOSYS, ENOSYS, ENOSYS, SYS_ioctl, -1, PERF_EVENT_IOC_ENABLE, 0),
	CALL("merge_perf_events", ENOSYS, ENOSYS, ENOSYS, SYS_ioctl, -1, PERF_EVENT_IOC_SET_OUTPUT,
	     0),
	CALL("open_to_read", 0, ENOENT, 0, SYS_openat, AT_FDCWD, POINTER("/"), O_RDONLY),
	CALL("open_to_write", ENOSYS, ENOENT, ENOSYS, SYS_openat, AT_FDCWD, POINTER("/dev/null"),
	     O_RDWR),
	CALL("open_to_create", ENOSYS, ENOENT, ENOSYS, SYS_openat, AT_FDCWD, POINTER("/tmp/x"),
	     O_CREAT, 0600),
	CALL("open_unnamed", ENOSYS, ENOENT, ENOSYS, SYS_openat, AT_FDCWD, POINTER("/tmp"),
	     O_TMPFILE, 0600),
	CALL("truncate_file", ENOSYS, ENOENT, ENOSYS, SYS_openat, AT_FDCWD, POINTER("/dev/null"),
	     O_TRUNC),
	CALL("stat_path", 0, ENOENT, 0, SYS_newfstatat, AT_FDCWD, POINTER("/"), POINTER(result)),
	CALL("stat_path_by_flag", 0, ENOENT, 0, SYS_newfstatat, AT_FDCWD, POINTER("/"),
	     POINTER(result), AT_EMPTY_PATH),
	CALL("stat_descriptor", 0, 0, 0, SYS_fstat, STDERR_FILENO, POINTER(result)),
	CALL("access_path", ENOSYS, ENOENT, 0, SYS_faccessat, AT_FDCWD, POINTER("/"), R_OK),
	CALL("read_link", 0, ENOENT, 0, SYS_readlinkat, AT_FDCWD, POINTER("/proc/self/exe"),
	     POINTER(result), sizeof(result)),
	CALL("unlink_path", ENOSYS, ENOSYS, ENOSYS, SYS_unlinkat, AT_FDCWD,
	     POINTER("/does/not/exist")),
	CALL("socket_tcp", ENOSYS, ENOSYS, 0, SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC),
	FUNCTION(socket_udp6, ENOSYS, ENOSYS, 0),
	CALL("socket_raw", ENOSYS, ENOSYS, ENOSYS, SYS_socket, AF_INET, SOCK_RAW, 1),
	CALL("socket_unix", ENOSYS, ENOSYS, EAFNOSUPPORT, SYS_socket, AF_UNIX, SOCK_STREAM),
	CALL("socket_netlink", ENOSYS, ENOSYS, EAFNOSUPPORT, SYS_socket, AF_NETLINK, SOCK_RAW),
	CALL("socket_packet", ENOSYS, ENOSYS, ENOSYS, SYS_socket, AF_PACKET, SOCK_DGRAM),
	CALL("socket_pair", 0, ENOSYS, 0, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, POINTER(result)),
	CALL("listen_to", ENOSYS, ENOSYS, ENOSYS, SYS_listen, -1, 1),
	CALL("execute", ENOSYS, ENOSYS, ENOSYS, SYS_execve, POINTER("/does/not/exist")),
	CALL("make_process", ENOSYS, ENOSYS, ENOSYS, SYS_clone, SIGCHLD),
	CALL("make_namespace", ENOSYS, ENOSYS, ENOSYS, SYS_clone,
	     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNET),
	CALL("leave_namespace", ENOSYS, ENOSYS, ENOSYS, SYS_unshare, CLONE_NEWUSER),
	CALL("signal_parent", ENOSYS, ENOSYS, ENOSYS, SYS_kill, PARENT),
	CALL("signal_parent_thread", 0, ENOSYS, ENOSYS, SYS_tgkill, PARENT, PARENT),
	CALL("wake_parent_thread", ENOSYS, ENOSYS, ENOSYS, SYS_tgkill, PARENT, PARENT, SIGCONT),
	FUNCTION(signal_itself, 0, 0, 0),
	CALL("signal_by_owner", ENOSYS, ENOSYS, ENOSYS, SYS_fcntl, STDERR_FILENO, F_SETOWN, PARENT),
	CALL("trace", ENOSYS, ENOSYS, ENOSYS, SYS_ptrace, PTRACE_TRACEME),
	CALL("read_process", 0, ENOSYS, ENOSYS, SYS_process_vm_readv, PARENT),
	CALL("write_process", ENOSYS, ENOSYS, ENOSYS, SYS_process_vm_writev, PARENT),
	CALL("write_tracee", ENOSYS, ENOSYS, ENOSYS, SYS_ptrace, PTRACE_POKEDATA, PARENT),
	CALL("become_another", ENOSYS, ENOSYS, ENOSYS, SYS_setresuid, 1, 1, 1),
	CALL("type_for_terminal", ENOSYS, ENOSYS, ENOSYS, SYS_ioctl, -1, TIOCSTI, POINTER("x")),
	CALL("mark_seccomp", ENOSYS, ENOSYS, ENOSYS, SYS_seccomp, 1),
	FUNCTION(map_memory, 0, 0, 0),
	FUNCTION(map_code, ENOSYS, ENOSYS, EPERM),
	FUNCTION(make_code, ENOSYS, ENOSYS, ENOSYS),
	FUNCTION(make_sealed_file, 0, 0, 0),
	FUNCTION(write_to_stream, 0, 0, 0),
	FUNCTION(sort, 0, 0, 0),
};

/* The exit status of a child that could not enter the sandbox; no errno has this number. */
#define NO_SANDBOX 255

/* Makes the attempt in a child with this filter. Returns the status of waitpid(2). */
static int run(enum sandbox sandbox, bool kill, const struct attempt *a)
{
	int status;
	pid_t pid;

	parent = getpid();
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* FIONREAD needs a pipe, and stdio's check for a terminal needs a terminal. */
		int terminal = posix_openpt(O_RDWR | O_NOCTTY);
		int fds[2];

		if (pipe(fds) < 0 || dup2(fds[0], STDIN_FILENO) < 0 ||
		    dup2(terminal, STDOUT_FILENO) < 0 ||
		    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    sandbox_enter(sandbox, kill, write_dir) < 0)
			_exit(NO_SANDBOX);
		_exit(try(a));
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static void check(enum sandbox sandbox, const struct attempt *a, int expected)
{
	int status = run(sandbox, false, a);

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected,
		      "%s: status %#x instead of %d", a->name, (unsigned int)status, expected);
	status = run(sandbox, true, a);
	if (expected == ENOSYS)
		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS,
			      "%s: status %#x, not killed", a->name, (unsigned int)status);
	else
		ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected,
			      "%s, killing: status %#x instead of %d", a->name,
			      (unsigned int)status, expected);
}

TESTS(capture_may_make_only_its_calls, array_size(attempts))
{
	check(SANDBOX_CAPTURE, &attempts[_i], attempts[_i].capture);
}

static const struct attempt *attempt_named(const char *name)
{
	for (size_t i = 0; i < array_size(attempts); i++)
		if (strcmp(attempts[i].name, name) == 0)
			return &attempts[i];
	ck_abort_msg("no %s", name);
	return NULL;
}

/* With sampler = perf capture may also open and start perf events, and change nothing else. */
TEST(capture_may_use_perf_events)
{
	check(SANDBOX_CAPTURE_PERF, attempt_named("perf_event_open"), EFAULT);
	check(SANDBOX_CAPTURE_PERF, attempt_named("start_perf_event"), EBADF);
	check(SANDBOX_CAPTURE_PERF, attempt_named("merge_perf_events"), ENOSYS);
	check(SANDBOX_CAPTURE_PERF, attempt_named("open_to_write"), ENOSYS);
}

TESTS(unwind_may_make_only_harmless_calls, array_size(attempts))
{
	check(SANDBOX_UNWIND, &attempts[_i], attempts[_i].unwind);
}

TESTS(ship_may_make_only_its_calls, array_size(attempts))
{
	check(SANDBOX_SHIP, &attempts[_i], attempts[_i].ship);
}

/* Shows that the failures above are those of the sandbox and not of the machine. */
TEST(the_calls_work_without_a_sandbox)
{
	static const char *const names[] = {"open_to_write", "socket_pair", "socket_unix",
					    "map_code",	     "make_code",   "signal_parent"};

	parent = getppid();
	for (size_t i = 0; i < array_size(names); i++)
		OK(try(attempt_named(names[i])));
	ck_assert_int_eq(try(attempt_named("execute")), ENOENT);
}

/* FIONREAD of a descriptor. */
TEST(only_ship_may_use_fionread)
{
	static const struct attempt a =
		CALL("FIONREAD", ENOSYS, ENOSYS, 0, SYS_ioctl, 0, FIONREAD, POINTER(result));

	check(SANDBOX_SHIP, &a, 0);
	check(SANDBOX_UNWIND, &a, ENOSYS);
	check(SANDBOX_CAPTURE, &a, ENOSYS);
}

static void check_once(int expected, struct attempt a)
{
	int status = run(SANDBOX_SHIP, false, &a);

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected,
		      "%s: status %#x instead of %d", a.name, (unsigned int)status, expected);
}

#define CHECK_ONCE(name, expected, ...) \
	check_once(expected, (struct attempt)CALL(name, 0, 0, 0, __VA_ARGS__))
#define MAKE (O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)

TEST(ship_writes_in_its_directory_only)
{
	char path[] = "/tmp/check_sandbox.XXXXXX";
	/* Landlock (Linux 5.13): the filter alone cannot see whether a name is absolute. */
	const bool confined = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;

	ck_assert_ptr_nonnull(mkdtemp(path));
	(void)snprintf(elsewhere, sizeof(elsewhere), "%s.elsewhere", path);
	write_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(write_dir, 0);
	CHECK_ONCE("make_there", 0, SYS_openat, DIRECTORY, POINTER("a"), MAKE, 0600);
	CHECK_ONCE("overwrite_there", ENOSYS, SYS_openat, DIRECTORY, POINTER("a"),
		   O_WRONLY | O_TRUNC);
	CHECK_ONCE("rename_there", 0, SYS_renameat, DIRECTORY, POINTER("a"), DIRECTORY,
		   POINTER("b"));
	CHECK_ONCE("rename_elsewhere", ENOSYS, SYS_renameat, DIRECTORY, POINTER("b"), AT_FDCWD,
		   POINTER(elsewhere));
	CHECK_ONCE("make_directory", ENOSYS, SYS_mkdirat, DIRECTORY, POINTER("c"), 0700);
	CHECK_ONCE("sync_there", 0, SYS_fsync, DIRECTORY);
	CHECK_ONCE("remove_elsewhere", ENOSYS, SYS_unlinkat, AT_FDCWD, POINTER(elsewhere));
	CHECK_ONCE("remove_there", 0, SYS_unlinkat, DIRECTORY, POINTER("b"));
	CHECK_ONCE("make_elsewhere", ENOSYS, SYS_openat, AT_FDCWD, POINTER(elsewhere), MAKE, 0600);
	CHECK_ONCE("make_by_another_name", confined ? EACCES : 0, SYS_openat, DIRECTORY,
		   POINTER(elsewhere), MAKE, 0600);
	(void)unlink(elsewhere);
	close_fd(&write_dir);
	OK(rmdir(path));
}

/* glibc calls clone3 first, and clone if clone3 fails with ENOSYS. */
TEST(clone3_fails_with_enosys_even_if_forbidden_calls_kill)
{
	static const struct attempt a = CALL("clone3", 0, 0, 0, SYS_clone3, 0);
	int status = run(SANDBOX_SHIP, true, &a);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), ENOSYS);
}

#ifdef __x86_64__
TESTS(a_call_of_another_architecture_kills, SANDBOX_SHIP + 1)
{
	static const struct attempt a = CALL("x32", 0, 0, 0, 0x40000000 + SYS_getpid, 0);
	int status = run((enum sandbox)_i, false, &a);

	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSYS);
}
#endif
