#include "daemon/common/sandbox.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <linux/perf_event.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

#include "daemon/common/landlock.h"

/*
 * Calls that all these processes may make with any arguments. Their effects are limited to the
 * process and its descriptors.
 *
 * The number of a call that the architecture lacks (epoll_wait on arm64) is negative;
 * libseccomp makes no rule for it.
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
	/* memory; mmap and mprotect are allowed with conditions below */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(sysinfo), /* glibc's qsort asks how much there is */
	/* time and random numbers, where the vDSO does not have them */
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	/* the process itself; tgkill is allowed with conditions below */
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

/* The further calls of capture. */
static const int capture_calls[] = {
	/* its tracees; ptrace and signals are allowed with conditions below */
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(wait4),
	SCMP_SYS(waitid),
	SCMP_SYS(pidfd_open),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(get_robust_list),
	/* files of /proc; open and openat are allowed with conditions below */
	SCMP_SYS(stat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getxattr),
	SCMP_SYS(getdents64),
	/* timers and signals of its own */
	SCMP_SYS(timer_create),
	SCMP_SYS(timer_settime),
	SCMP_SYS(timer_delete),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(setitimer),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(signalfd4),
	SCMP_SYS(rt_sigtimedwait),
	/* rings; socketpair is allowed with a condition below */
	SCMP_SYS(sendto),
	SCMP_SYS(getsockopt),
	/* scheduling and limits */
	SCMP_SYS(sched_getparam),
	SCMP_SYS(sched_getscheduler),
	SCMP_SYS(sched_setscheduler),
	SCMP_SYS(setpriority),
	SCMP_SYS(getrusage),
	SCMP_SYS(prlimit64),
	/* the tracing thread */
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(sched_getaffinity),
};

/* The ptrace requests of lib/capture: none writes memory of the tracee. */
static const int ptrace_requests[] = {
	PTRACE_SEIZE,	  PTRACE_INTERRUPT, PTRACE_CONT,       PTRACE_SYSCALL,
	PTRACE_LISTEN,	  PTRACE_DETACH,    PTRACE_SETOPTIONS, PTRACE_GETEVENTMSG,
	PTRACE_GETREGSET, PTRACE_SETREGSET, PTRACE_POKEUSER,
};

/* Calls that open a file, or read its attributes or link, by its path. */
static const int path_calls[] = {
	SCMP_SYS(open),	     SCMP_SYS(openat),	   SCMP_SYS(openat2),  SCMP_SYS(stat),
	SCMP_SYS(lstat),     SCMP_SYS(newfstatat), SCMP_SYS(statx),    SCMP_SYS(access),
	SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
};

/* The further calls of libcurl, OpenSSL and the resolver. */
static const int ship_calls[] = {
	/* sockets; socket and socketpair are allowed with conditions below */
	SCMP_SYS(connect), SCMP_SYS(sendto), SCMP_SYS(sendmmsg), SCMP_SYS(recvfrom),
	SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	/*
	 * for resolv.conf, hosts and certificates; open and openat are allowed with conditions
	 * below
	 */
	SCMP_SYS(stat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(access),
	SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat),
	SCMP_SYS(uname), /* the host name */
	/* libcurl's wake-ups, which differ by version, and its resolver thread */
	SCMP_SYS(pipe2), SCMP_SYS(eventfd2), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
	SCMP_SYS(sched_getaffinity), /* malloc, in a second thread */
};

/*
 * A filter under construction. Adding a rule fails only for lack of memory or by a bug here,
 * so the first error is kept and checked once.
 */
struct filter {
	scmp_filter_ctx ctx;
	uint32_t fallback; /* the action for calls without a rule */
	int error;
};

static void add_rule(struct filter *f, uint32_t action, int call, unsigned int n,
		     const struct scmp_arg_cmp *args)
{
	int r;

	/* libseccomp refuses a rule whose action is the fallback. */
	if (f->error < 0 || action == f->fallback)
		return;
	r = seccomp_rule_add_array(f->ctx, action, call, n, args);
	/* -EDOM: not a call of this architecture. */
	if (r < 0 && r != -EDOM)
		f->error = r;
}

static void add_rules(struct filter *f, uint32_t action, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_rule(f, action, calls[i], 0, NULL);
}

/* A rule for call if the bits of argument number arg in mask equal value. */
static void add_masked(struct filter *f, uint32_t action, int call, unsigned int arg, uint64_t mask,
		       uint64_t value)
{
	struct scmp_arg_cmp c = {
		.arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};

	add_rule(f, action, call, 1, &c);
}

/* A rule for call if argument number arg equals value. */
static void add_equal(struct filter *f, uint32_t action, int call, unsigned int arg, uint64_t value)
{
	struct scmp_arg_cmp c = {.arg = arg, .op = SCMP_CMP_EQ, .datum_a = value};

	add_rule(f, action, call, 1, &c);
}

static void add_common(struct filter *f)
{
	static const int fcntls[] = {
		F_GETFD, F_SETFD,	  F_GETFL,     F_SETFL,
		F_DUPFD, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS,
	};
	uint32_t allow = SCMP_ACT_ALLOW;

	add_rules(f, allow, common_calls, array_size(common_calls));
	/*
	 * No PROT_EXEC: the process can get no new code, neither from a file nor written in memory.
	 */
	add_masked(f, allow, SCMP_SYS(mmap), 2, PROT_EXEC, 0);
	add_masked(f, allow, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);
	/* F_SETOWN is missing on purpose: it makes the kernel signal other processes. */
	for (size_t i = 0; i < array_size(fcntls); i++)
		add_equal(f, allow, SCMP_SYS(fcntl), 1, (uint64_t)fcntls[i]);
	/* stdio's check for a terminal; the request depends on glibc's version. */
	add_equal(f, allow, SCMP_SYS(ioctl), 1, TCGETS);
	add_equal(f, allow, SCMP_SYS(ioctl), 1, TCGETS2);
}

/* abort() sends a signal to its own process. */
static void add_signal_to_itself(struct filter *f)
{
	add_equal(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 0, (uint64_t)getpid());
}

static void add_unwind(struct filter *f)
{
	uint32_t no_file = SCMP_ACT_ERRNO(ENOENT);

	add_signal_to_itself(f);
	/* daemon/unwind/resource_limits.h */
	add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(timer_settime), 0, NULL);
	add_rules(f, no_file, path_calls, array_size(path_calls));
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

			add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), array_size(c), c);
		}
	}
	/*
	 * glibc's resolver tries nscd (Unix) and asks for the host's addresses (netlink), and
	 * works without both, so the calls fail instead of killing the process.
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
	/*
	 * A filter cannot check the flags of clone3, which are in memory. On ENOSYS, glibc falls
	 * back to clone.
	 */
	add_rule(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0, NULL);
}

static void add_opening_to_read(struct filter *f)
{
	static const uint64_t write_flags =
		O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);

	add_masked(f, SCMP_ACT_ALLOW, SCMP_SYS(open), 1, write_flags, O_RDONLY);
	add_masked(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 2, write_flags, O_RDONLY);
}

static void add_capture(struct filter *f)
{
	const uint32_t allow = SCMP_ACT_ALLOW;

	add_rules(f, allow, capture_calls, array_size(capture_calls));
	for (size_t i = 0; i < array_size(ptrace_requests); i++)
		add_equal(f, allow, SCMP_SYS(ptrace), 0, (uint64_t)ptrace_requests[i]);
	add_opening_to_read(f);
	add_threads(f);
	/*
	 * Signal 0 asks whether a thread exists. Capture may not signal itself: the filter is made
	 * when the project is built, and cannot contain the pid of the process.
	 */
	add_equal(f, allow, SCMP_SYS(tgkill), 2, 0);
	add_equal(f, allow, SCMP_SYS(pidfd_send_signal), 1, 0);
	add_equal(f, allow, SCMP_SYS(socketpair), 0, AF_UNIX);
	/*
	 * Asks whether a target's socket is at the mark of urgent data, which capture has to know
	 * to restart a system call (lib/capture/restart/).
	 */
	add_equal(f, allow, SCMP_SYS(ioctl), 1, SIOCATMARK);
	add_equal(f, allow, SCMP_SYS(prctl), 0, PR_SET_TIMERSLACK);
}

static void add_perf(struct filter *f)
{
	static const uint64_t requests[] = {
		PERF_EVENT_IOC_ENABLE,
		PERF_EVENT_IOC_DISABLE,
		PERF_EVENT_IOC_PERIOD,
	};

	add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(perf_event_open), 0, NULL);
	for (size_t i = 0; i < array_size(requests); i++)
		add_equal(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, requests[i]);
}

/* Allows to create, sync, rename and remove files in the directory. */
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

	add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), array_size(open), open);
	add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(renameat), array_size(rename), rename);
	add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(unlinkat), array_size(unlink), unlink);
	add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(fsync), 0, NULL);
	add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(getdents64), 0, NULL);
}

static void add_ship(struct filter *f)
{
	add_signal_to_itself(f);
	add_rules(f, SCMP_ACT_ALLOW, ship_calls, array_size(ship_calls));
	add_sockets(f);
	add_threads(f);
	add_opening_to_read(f);
	/* The resolver asks for the length of an answer. */
	add_equal(f, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, FIONREAD);
	/*
	 * A module of nsswitch.conf that is not built into glibc fails to load, and glibc asks
	 * the next one, so the call fails instead of killing the process.
	 */
	add_masked(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(mmap), 2, PROT_EXEC, PROT_EXEC);
}

/*
 * Makes a filter for the architecture arch, one of libseccomp's SCMP_ARCH_ constants. Sets f->error
 * to the first error, or to 0.
 */
static void make_filter(struct filter *f, enum sandbox sandbox, bool kill, uint32_t arch,
			int write_dir)
{
	*f = (struct filter){.fallback = kill ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(ENOSYS)};
	f->ctx = seccomp_init(f->fallback);
	if (f->ctx == NULL) {
		f->error = -ENOMEM;
		return;
	}
	/* 32-bit code and x32 have other numbers. These processes have neither. */
	f->error = seccomp_attr_set(f->ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (f->error == 0 && arch != seccomp_arch_native()) {
		f->error = seccomp_arch_add(f->ctx, arch);
		if (f->error == 0)
			f->error = seccomp_arch_remove(f->ctx, SCMP_ARCH_NATIVE);
	}
	add_common(f);
	switch (sandbox) {
	case SANDBOX_CAPTURE:
		add_capture(f);
		break;
	case SANDBOX_CAPTURE_PERF:
		add_capture(f);
		add_perf(f);
		break;
	case SANDBOX_UNWIND:
		add_unwind(f);
		break;
	case SANDBOX_SHIP:
		add_ship(f);
		if (write_dir >= 0)
			add_files_in(f, write_dir);
		break;
	}
}

int sandbox_enter(enum sandbox sandbox, bool kill, int write_dir)
{
	struct filter f;
	int r = landlock_restrict_writing(write_dir);

	if (r < 0)
		return r;
	make_filter(&f, sandbox, kill, seccomp_arch_native(), write_dir);
	/* The caller has set no_new_privs. */
	if (f.error == 0)
		f.error = seccomp_attr_set(f.ctx, SCMP_FLTATR_CTL_NNP, 0);
	/* SYSRAWRC: otherwise libseccomp reports every error of the kernel as ECANCELED. */
	if (f.error == 0)
		f.error = seccomp_attr_set(f.ctx, SCMP_FLTATR_API_SYSRAWRC, 1);
	if (f.error == 0)
		f.error = seccomp_load(f.ctx);
	seccomp_release(f.ctx);
	return f.error;
}

int sandbox_export(enum sandbox sandbox, bool kill, uint32_t arch, int fd)
{
	struct filter f;

	make_filter(&f, sandbox, kill, arch, -1);
	/* 2: a binary search for the number of the call, since the filter runs at each call. */
	if (f.error == 0)
		f.error = seccomp_attr_set(f.ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (f.error == 0)
		f.error = seccomp_export_bpf(f.ctx, fd);
	seccomp_release(f.ctx);
	return f.error;
}
