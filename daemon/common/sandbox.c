#include "daemon/common/sandbox.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "daemon/common/landlock.h"

/*
 * Calls that both processes may make with whatever arguments. None of them
 * reaches what is not in a descriptor that the process has, or in itself.
 *
 * A name that the architecture does not have (epoll_wait on arm64) is a
 * negative number, for which libseccomp makes no rule.
 */
static const int common_calls[] = {
	/* descriptors */
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(lseek),
	SCMP_SYS(fstat),
	SCMP_SYS(ftruncate),
	SCMP_SYS(dup),
	SCMP_SYS(close),
	SCMP_SYS(memfd_create),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvmsg),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	/* memory; with conditions: mmap, mprotect */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(sysinfo), /* glibc's qsort asks how much there is */
	/* time and chance, where the vDSO has no answer */
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	/* itself; with conditions: tgkill */
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(futex),
	SCMP_SYS(sched_yield),
	SCMP_SYS(restart_syscall), /* after a stop by a signal */
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* What a file's path reaches, in whatever form. */
static const int path_calls[] = {
	SCMP_SYS(open),	      SCMP_SYS(openat),	  SCMP_SYS(openat2),	SCMP_SYS(stat),
	SCMP_SYS(lstat),      SCMP_SYS(statx),	  SCMP_SYS(access),	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
};

/* What libcurl, OpenSSL and the resolver need besides. */
static const int ship_calls[] = {
	/* sockets; with conditions: socket, socketpair */
	SCMP_SYS(connect), SCMP_SYS(sendto), SCMP_SYS(sendmmsg), SCMP_SYS(recvfrom),
	SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	/* resolv.conf, hosts, certificates; with conditions: open, openat */
	SCMP_SYS(stat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(access),
	SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	SCMP_SYS(uname), /* the host's own name */
	/* how libcurl wakes itself up, by version; and its resolver's thread */
	SCMP_SYS(pipe2), SCMP_SYS(eventfd2), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
	SCMP_SYS(sched_getaffinity), /* malloc, in a second thread */
};

/*
 * libseccomp adds rules to a filter one by one, and each can fail only for
 * memory or by our mistake: the first failure is kept.
 */
struct filter {
	scmp_filter_ctx ctx;
	uint32_t fallback; /* the action for what has no rule */
	int error;
};

static void add(struct filter *f, uint32_t action, int call, unsigned int n,
		const struct scmp_arg_cmp *args)
{
	int r;

	/* libseccomp takes no rule that says what holds without it. */
	if (f->error < 0 || action == f->fallback)
		return;
	r = seccomp_rule_add_array(f->ctx, action, call, n, args);
	/* -EDOM: not a call of this architecture. */
	if (r < 0 && r != -EDOM)
		f->error = r;
}

static void add_all(struct filter *f, uint32_t action, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(f, action, calls[i], 0, NULL);
}

/* call, if its argument number arg has of the bits in mask those in value. */
static void add_masked(struct filter *f, uint32_t action, int call, unsigned int arg, uint64_t mask,
		       uint64_t value)
{
	struct scmp_arg_cmp c = {
		.arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};

	add(f, action, call, 1, &c);
}

/* call, if its argument number arg is value. */
static void add_equal(struct filter *f, uint32_t action, int call, unsigned int arg, uint64_t value)
{
	struct scmp_arg_cmp c = {.arg = arg, .op = SCMP_CMP_EQ, .datum_a = value};

	add(f, action, call, 1, &c);
}

static void add_common(struct filter *f)
{
	static const int fcntls[] = {
		F_GETFD, F_SETFD,	  F_GETFL,     F_SETFL,
		F_DUPFD, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS,
	};
	uint32_t allow = SCMP_ACT_ALLOW;

	add_all(f, allow, common_calls, array_size(common_calls));
	/* No new code: neither from a file nor written here. */
	add_masked(f, allow, SCMP_SYS(mmap), 2, PROT_EXEC, 0);
	add_masked(f, allow, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
	/* No F_SETOWN: it makes the kernel signal others. */
	for (size_t i = 0; i < array_size(fcntls); i++)
		add_equal(f, allow, SCMP_SYS(fcntl), 1, (uint64_t)fcntls[i]);
	/* stdio asks if what it writes to is a terminal, by glibc's version. */
	add_equal(f, allow, SCMP_SYS(ioctl), 1, TCGETS);
	add_equal(f, allow, SCMP_SYS(ioctl), 1, TCGETS2);
	/* abort() */
	add_equal(f, allow, SCMP_SYS(tgkill), 0, (uint64_t)getpid());
}

static void add_unwind(struct filter *f)
{
	uint32_t no_file = SCMP_ACT_ERRNO(ENOENT);

	/* daemon/unwind/leash.h */
	add(f, SCMP_ACT_ALLOW, SCMP_SYS(timer_settime), 0, NULL);
	add_all(f, no_file, path_calls, array_size(path_calls));
	/* glibc's fstat is this, with an empty path. */
	add_masked(f, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH, AT_EMPTY_PATH);
	add_masked(f, no_file, SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH, 0);
}

static void add_sockets(struct filter *f)
{
	/* The type's other bits are SOCK_CLOEXEC and SOCK_NONBLOCK. */
	static const uint64_t type_mask = 0xf;
	static const int families[] = {AF_INET, AF_INET6};
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM};
	static const int others[] = {AF_UNIX, AF_NETLINK};

	for (size_t i = 0; i < array_size(families); i++) {
		for (size_t j = 0; j < array_size(types); j++) {
			struct scmp_arg_cmp c[] = {
				{.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (uint64_t)families[i]},
				{.arg = 1,
				 .op = SCMP_CMP_MASKED_EQ,
				 .datum_a = type_mask,
				 .datum_b = (uint64_t)types[j]},
			};

			add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), array_size(c), c);
		}
	}
	/*
	 * glibc's resolver tries nscd and asks for our addresses, and goes on
	 * without: no reason to be killed.
	 */
	for (size_t i = 0; i < array_size(others); i++)
		add_equal(f, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 0,
			  (uint64_t)others[i]);
	add_equal(f, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 0, AF_UNIX);
}

static void add_threads(struct filter *f)
{
	static const uint64_t thread =
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
	static const uint64_t namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
					   CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
					   CLONE_NEWNET;

	add_masked(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 0, thread | namespaces, thread);
	/* Its flags are in memory, out of sight: glibc falls back to clone. */
	add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, NULL);
}

/* Whoever makes a file puts it on the disk, gives it a name, and removes it. */
static void add_files_in(struct filter *f, int dir)
{
	const uint64_t make = O_WRONLY | O_CREAT | O_EXCL;
	const uint64_t mask = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_TMPFILE;
	const struct scmp_arg_cmp in = {.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (uint64_t)dir};
	const struct scmp_arg_cmp to = {.arg = 2, .op = SCMP_CMP_EQ, .datum_a = (uint64_t)dir};
	const struct scmp_arg_cmp open[] = {
		in, {.arg = 2, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = make}};
	const struct scmp_arg_cmp rename[] = {in, to};
	const struct scmp_arg_cmp unlink[] = {in, {.arg = 2, .op = SCMP_CMP_EQ, .datum_a = 0}};

	add(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), array_size(open), open);
	add(f, SCMP_ACT_ALLOW, SCMP_SYS(renameat), array_size(rename), rename);
	add(f, SCMP_ACT_ALLOW, SCMP_SYS(renameat2), array_size(rename), rename);
	add(f, SCMP_ACT_ALLOW, SCMP_SYS(unlinkat), array_size(unlink), unlink);
	add(f, SCMP_ACT_ALLOW, SCMP_SYS(fsync), 0, NULL);
	add(f, SCMP_ACT_ALLOW, SCMP_SYS(getdents64), 0, NULL);
}

static void add_ship(struct filter *f)
{
	static const uint64_t write_flags =
		O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

	add_all(f, SCMP_ACT_ALLOW, ship_calls, array_size(ship_calls));
	add_sockets(f);
	add_threads(f);
	add_masked(f, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, write_flags, O_RDONLY);
	add_masked(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 2, write_flags, O_RDONLY);
	/* The resolver: how long is the answer? */
	add_equal(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, FIONREAD);
	/*
	 * A module of nsswitch.conf that glibc does not have built in cannot be
	 * loaded, and the next one is asked: no reason to be killed.
	 */
	add_masked(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(mmap), 2, PROT_EXEC, PROT_EXEC);
}

int sandbox_enter(enum sandbox sandbox, bool kill, int write_dir)
{
	struct filter f = {
		.fallback = kill ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(ENOSYS),
	};

	f.error = landlock_restrict_writing(write_dir);
	if (f.error < 0)
		return f.error;
	f.ctx = seccomp_init(f.fallback);
	if (f.ctx == NULL)
		return -ENOMEM;
	/* 32-bit code and x32 have other numbers: none of ours is such. */
	f.error = seccomp_attr_set(f.ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* The caller has set no_new_privs, or is wrong. */
	if (f.error == 0)
		f.error = seccomp_attr_set(f.ctx, SCMP_FLTATR_CTL_NNP, 0);
	/* Else every error of the kernel is ECANCELED. */
	if (f.error == 0)
		f.error = seccomp_attr_set(f.ctx, SCMP_FLTATR_API_SYSRAWRC, 1);
	add_common(&f);
	switch (sandbox) {
	case SANDBOX_UNWIND:
		add_unwind(&f);
		break;
	case SANDBOX_SHIP:
		add_ship(&f);
		if (write_dir >= 0)
			add_files_in(&f, write_dir);
		break;
	}
	if (f.error == 0)
		f.error = seccomp_load(f.ctx);
	seccomp_release(f.ctx);
	return f.error;
}
