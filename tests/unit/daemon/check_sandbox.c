#include "daemon/sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

/* A call as it is, without what libc makes of it. Gives 0 or its errno. */
static int call(long number, long a, long b, long c, long d)
{
	return syscall(number, a, b, c, d, 0L, 0L) < 0 ? errno : 0;
}

#define POINTER(p) ((long)(uintptr_t)(p))

static int open_to_read(void)
{
	return call(SYS_openat, AT_FDCWD, POINTER("/"), O_RDONLY, 0);
}

static int open_to_write(void)
{
	return call(SYS_openat, AT_FDCWD, POINTER("/dev/null"), O_RDWR, 0);
}

static int open_to_create(void)
{
	return call(SYS_openat, AT_FDCWD, POINTER("/tmp/x"), O_CREAT, 0600);
}

static int open_unnamed(void)
{
	return call(SYS_openat, AT_FDCWD, POINTER("/tmp"), O_TMPFILE, 0600);
}

static int truncate_file(void)
{
	return call(SYS_openat, AT_FDCWD, POINTER("/dev/null"), O_TRUNC, 0);
}

static int stat_path(void)
{
	struct stat st;

	return call(SYS_newfstatat, AT_FDCWD, POINTER("/"), POINTER(&st), 0);
}

static int stat_descriptor(void)
{
	struct stat st;

	return fstat(STDERR_FILENO, &st) < 0 ? errno : 0;
}

static int access_path(void)
{
	return call(SYS_faccessat, AT_FDCWD, POINTER("/"), R_OK, 0);
}

static int read_link(void)
{
	char text[64];

	return call(SYS_readlinkat, AT_FDCWD, POINTER("/proc/self/exe"),
		    POINTER(text), sizeof(text));
}

static int unlink_path(void)
{
	return call(SYS_unlinkat, AT_FDCWD, POINTER("/does/not/exist"), 0, 0);
}

static int socket_tcp(void)
{
	return call(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, 0);
}

static int socket_udp6(void)
{
	int e = call(SYS_socket, AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK, 0, 0);

	/* A machine may have no IPv6: then it was the kernel that answered. */
	return e == EAFNOSUPPORT ? 0 : e;
}

static int socket_raw(void)
{
	return call(SYS_socket, AF_INET, SOCK_RAW, 1, 0);
}

static int socket_unix(void)
{
	return call(SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0);
}

static int socket_netlink(void)
{
	return call(SYS_socket, AF_NETLINK, SOCK_RAW, 0, 0);
}

static int socket_packet(void)
{
	return call(SYS_socket, AF_PACKET, SOCK_DGRAM, 0, 0);
}

static int socket_pair(void)
{
	int fds[2];

	return call(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, POINTER(fds));
}

static int listen_to(void)
{
	return call(SYS_listen, -1, 1, 0, 0);
}

static int execute(void)
{
	return call(SYS_execve, POINTER("/does/not/exist"), 0, 0, 0);
}

static int make_process(void)
{
	return call(SYS_clone, SIGCHLD, 0, 0, 0);
}

static int make_namespace(void)
{
	return call(SYS_clone,
		    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
			    CLONE_THREAD | CLONE_NEWNET,
		    0, 0, 0);
}

static int make_hidden(void)
{
	return call(SYS_clone3, 0, 0, 0, 0);
}

static int leave_namespace(void)
{
	return call(SYS_unshare, CLONE_NEWUSER, 0, 0, 0);
}

static int signal_parent(void)
{
	return call(SYS_kill, getppid(), 0, 0, 0);
}

static int signal_parent_thread(void)
{
	return call(SYS_tgkill, getppid(), getppid(), 0, 0);
}

static int signal_itself(void)
{
	return call(SYS_tgkill, getpid(), getpid(), 0, 0);
}

static int signal_by_owner(void)
{
	return call(SYS_fcntl, STDERR_FILENO, F_SETOWN, getppid(), 0);
}

static int trace(void)
{
	return call(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
}

static int read_process(void)
{
	return call(SYS_process_vm_readv, getppid(), 0, 0, 0);
}

static int become_another(void)
{
	return call(SYS_setresuid, 1, 1, 1, 0);
}

static int type_for_terminal(void)
{
	return call(SYS_ioctl, -1, TIOCSTI, POINTER("x"), 0);
}

static int mark_seccomp(void)
{
	return call(SYS_seccomp, 1, 0, 0, 0);
}

static int map_memory(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED				? errno
	       : mprotect(p, 4096, PROT_READ) < 0	? errno
	       : mremap(p, 4096, 8192, 1) == MAP_FAILED ? errno
							: 0;
}

static int map_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0 ? errno : 0;
}

static int make_sealed_file(void)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char byte;

	if (fd < 0 || ftruncate(fd, 1) < 0 || pread(fd, &byte, 1, 0) != 1 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0 ||
	    fcntl(fd, F_GET_SEALS) != F_SEAL_WRITE || close(fd) < 0)
		return errno;
	return 0;
}

/* stdio asks a terminal, which standard output is here, for more. */
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

/* So large that glibc asks how much memory there is. */
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

static int ask_how_much_to_read(void)
{
	int n;

	return call(SYS_ioctl, 0, FIONREAD, POINTER(&n), 0);
}

/*
 * What each sandbox answers. ENOSYS is what a filter that kills kills for; no
 * call here fails so by itself.
 */
static const struct {
	int (*attempt)(void);
	const char *name;
	int unwind;
	int ship;
} attempts[] = {
#define ATTEMPT(function, unwind, ship)           \
	{                                         \
		function, #function, unwind, ship \
	}
	ATTEMPT(open_to_read, ENOENT, 0),
	ATTEMPT(open_to_write, ENOENT, ENOSYS),
	ATTEMPT(open_to_create, ENOENT, ENOSYS),
	ATTEMPT(open_unnamed, ENOENT, ENOSYS),
	ATTEMPT(truncate_file, ENOENT, ENOSYS),
	ATTEMPT(stat_path, ENOENT, 0),
	ATTEMPT(stat_descriptor, 0, 0),
	ATTEMPT(access_path, ENOENT, 0),
	ATTEMPT(read_link, ENOENT, 0),
	ATTEMPT(unlink_path, ENOSYS, ENOSYS),
	ATTEMPT(socket_tcp, ENOSYS, 0),
	ATTEMPT(socket_udp6, ENOSYS, 0),
	ATTEMPT(socket_raw, ENOSYS, ENOSYS),
	ATTEMPT(socket_unix, ENOSYS, EAFNOSUPPORT),
	ATTEMPT(socket_netlink, ENOSYS, EAFNOSUPPORT),
	ATTEMPT(socket_packet, ENOSYS, ENOSYS),
	ATTEMPT(socket_pair, ENOSYS, 0),
	ATTEMPT(listen_to, ENOSYS, ENOSYS),
	ATTEMPT(execute, ENOSYS, ENOSYS),
	ATTEMPT(make_process, ENOSYS, ENOSYS),
	ATTEMPT(make_namespace, ENOSYS, ENOSYS),
	ATTEMPT(leave_namespace, ENOSYS, ENOSYS),
	ATTEMPT(signal_parent, ENOSYS, ENOSYS),
	ATTEMPT(signal_parent_thread, ENOSYS, ENOSYS),
	ATTEMPT(signal_itself, 0, 0),
	ATTEMPT(signal_by_owner, ENOSYS, ENOSYS),
	ATTEMPT(trace, ENOSYS, ENOSYS),
	ATTEMPT(read_process, ENOSYS, ENOSYS),
	ATTEMPT(become_another, ENOSYS, ENOSYS),
	ATTEMPT(type_for_terminal, ENOSYS, ENOSYS),
	ATTEMPT(mark_seccomp, ENOSYS, ENOSYS),
	ATTEMPT(map_memory, 0, 0),
	ATTEMPT(map_code, ENOSYS, EPERM),
	ATTEMPT(make_code, ENOSYS, ENOSYS),
	ATTEMPT(make_sealed_file, 0, 0),
	ATTEMPT(write_to_stream, 0, 0),
	ATTEMPT(sort, 0, 0),
#undef ATTEMPT
};

/* Of the child: no errno. */
#define NO_SANDBOX 255

/* Where SANDBOX_SHIP may write, and a name elsewhere. */
static int write_dir = -1;
static char elsewhere[64];

/* Runs attempt in a child with this filter; returns wait's status. */
static int run(enum sandbox sandbox, bool kill, int (*attempt)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* What FIONREAD and stdio can ask. */
		int terminal = posix_openpt(O_RDWR | O_NOCTTY);
		int fds[2];

		if (pipe(fds) < 0 || dup2(fds[0], STDIN_FILENO) < 0 ||
		    dup2(terminal, STDOUT_FILENO) < 0 ||
		    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    sandbox_enter(sandbox, kill, write_dir) < 0)
			_exit(NO_SANDBOX);
		_exit(attempt());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static void check(enum sandbox sandbox, const char *name, int (*attempt)(void),
		  int expected)
{
	int status = run(sandbox, false, attempt);

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected,
		      "%s: status %#x instead of %d", name,
		      (unsigned int)status, expected);
	status = run(sandbox, true, attempt);
	if (expected == ENOSYS)
		ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS,
			      "%s: status %#x, not killed", name,
			      (unsigned int)status);
	else
		ck_assert_msg(WIFEXITED(status) &&
				      WEXITSTATUS(status) == expected,
			      "%s, killing: status %#x instead of %d", name,
			      (unsigned int)status, expected);
}

TESTS(unwind, array_size(attempts))
{
	check(SANDBOX_UNWIND, attempts[_i].name, attempts[_i].attempt,
	      attempts[_i].unwind);
}

TESTS(ship, array_size(attempts))
{
	check(SANDBOX_SHIP, attempts[_i].name, attempts[_i].attempt,
	      attempts[_i].ship);
}

/* Else a failure above could be the machine's. */
TEST(without_a_sandbox_they_work)
{
	OK(open_to_write());
	OK(socket_pair());
	OK(socket_unix());
	OK(map_code());
	OK(make_code());
	OK(signal_parent());
	ck_assert_int_eq(execute(), ENOENT);
}

/* The same number as FIONREAD's rule has, and the other sandbox. */
TEST(asks_how_much_to_read)
{
	check(SANDBOX_SHIP, "FIONREAD", ask_how_much_to_read, 0);
	check(SANDBOX_UNWIND, "FIONREAD", ask_how_much_to_read, ENOSYS);
}

static int make_file(int dir, const char *name)
{
	return call(SYS_openat, dir, POINTER(name),
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

static int make_there(void)
{
	return make_file(write_dir, "a");
}

static int make_elsewhere(void)
{
	return make_file(AT_FDCWD, elsewhere);
}

static int make_by_another_name(void)
{
	return make_file(write_dir, elsewhere);
}

static int overwrite_there(void)
{
	return call(SYS_openat, write_dir, POINTER("a"), O_WRONLY | O_TRUNC, 0);
}

static int rename_there(void)
{
	return call(SYS_renameat, write_dir, POINTER("a"), write_dir,
		    POINTER("b"));
}

static int rename_elsewhere(void)
{
	return call(SYS_renameat, write_dir, POINTER("b"), AT_FDCWD,
		    POINTER(elsewhere));
}

static int make_directory(void)
{
	return call(SYS_mkdirat, write_dir, POINTER("c"), 0700, 0);
}

static int sync_there(void)
{
	return fsync(write_dir) < 0 ? errno : 0;
}

static int remove_there(void)
{
	return call(SYS_unlinkat, write_dir, POINTER("b"), 0, 0);
}

static int remove_elsewhere(void)
{
	return call(SYS_unlinkat, AT_FDCWD, POINTER(elsewhere), 0, 0);
}

static void check_once(int (*attempt)(void), int expected)
{
	int status = run(SANDBOX_SHIP, false, attempt);

	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected,
		      "status %#x instead of %d", (unsigned int)status,
		      expected);
}

TEST(writes_in_its_directory)
{
	char path[] = "/tmp/check_sandbox.XXXXXX";
	/* 5.13; the filter cannot see where a name leads. */
	const bool confined =
		syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;

	ck_assert_ptr_nonnull(mkdtemp(path));
	(void)snprintf(elsewhere, sizeof(elsewhere), "%s.elsewhere", path);
	write_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(write_dir, 0);
	check_once(make_there, 0);
	check_once(overwrite_there, ENOSYS);
	check_once(rename_there, 0);
	check_once(rename_elsewhere, ENOSYS);
	check_once(make_directory, ENOSYS);
	check_once(sync_there, 0);
	check_once(remove_elsewhere, ENOSYS);
	check_once(remove_there, 0);
	check_once(make_elsewhere, ENOSYS);
	check_once(make_by_another_name, confined ? EACCES : 0);
	(void)unlink(elsewhere);
	close_fd(&write_dir);
	OK(rmdir(path));
}

/* clone3 fails in every mode: glibc must be able to go on without it. */
TEST(clone3_is_not_there)
{
	int status = run(SANDBOX_SHIP, true, make_hidden);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), ENOSYS);
}

#ifdef __x86_64__
static int call_x32(void)
{
	return call(0x40000000 + SYS_getpid, 0, 0, 0, 0);
}

TESTS(kills_for_other_numbers, SANDBOX_SHIP + 1)
{
	int status = run((enum sandbox)_i, false, call_x32);

	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGSYS);
}
#endif
