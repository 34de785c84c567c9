/*
 * Runs a program, a sentry-profd, of which one system call fails.
 *
 * Usage: faults REPORT count PROGRAM [ARGUMENT...]
 *        faults REPORT PROCESS CALL REQUEST N ERRNO PROGRAM [ARGUMENT...]
 *
 * The program keeps the pid of this one. The Nth CALL that the processes of the
 * kind PROCESS make fails with ERRNO, a number, and is not carried out; "KILL"
 * instead of a number: the call is carried out after the process that its
 * second argument names, a tracee, was killed. REQUEST: only calls with this
 * value of the argument that requests() names count; "-": all. The dynamic
 * linker's calls of mmap do not count. PROCESS is
 * "broker"; "capture", "unwind" or "ship", its children; or "helper": a fork of
 * the broker that executes no other program, or has not done so yet.
 *
 * When that has happened, the file REPORT, which does not exist before, has a line
 * "failed PID KILLED"; KILLED is the thread that was killed, or 0. With "count",
 * no call fails: when all processes have ended, REPORT has a line "PROCESS CALL
 * REQUEST N" for each call, and "end".
 *
 * A seccomp filter of the program, which its children inherit, hands the calls
 * to another process (seccomp_unotify(2)), which lets all but one continue. So
 * nothing is traced: sentry-profd waits for its children and traces as ever.
 * Ends with status 77 if the kernel cannot do that.
 */
// cflags: -lseccomp
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "target.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define PREFIX	   "sentry-profd"
#define KINDS_MAX  2048
#define NO_REQUEST UINT64_MAX
#define PRIORITY   50
#define UNABLE	   77

/* Made before the filter; the program makes no call until taken is set. */
static struct handover {
	_Atomic int fd; /* the filter's, in the program; -1: not made yet */
	atomic_bool taken;
} *handover;

static const char *report_path;
static pid_t broker;

static struct {
	bool counts;
	const char *process;
	int call;
	uint64_t request;
	unsigned long n;
	int error; /* 0: a kill */
} rule;

static struct counted {
	char process[16];
	int call;
	uint64_t request;
	unsigned long n;
} counted[KINDS_MAX];
static size_t n_counted;

/* Calls that stand for many; and the number of the argument that says which. */
static int requests(int call)
{
	static const struct {
		int call, argument;
	} of[] = {
		{SYS_ptrace, 0},    {SYS_prctl, 0},   {SYS_socket, 0},
		{SYS_epoll_ctl, 1}, {SYS_fcntl, 1},   {SYS_futex, 1},
		{SYS_ioctl, 1},	    {SYS_madvise, 2}, {SYS_setsockopt, 2},
		{SYS_mmap, 3},
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (of[i].call == call)
			return of[i].argument;
	return -1;
}

static uint64_t request_of(const struct seccomp_data *data)
{
	const int argument = requests(data->nr);

	return argument < 0 ? NO_REQUEST : (uint32_t)data->args[argument];
}

/* The kind of the process that has this thread; "" before it is sentry-profd. */
static const char *process_of(pid_t tid, char ret[PATH_MAX])
{
	char link[64];
	const char *name;
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)tid);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n <= 0)
		return "";
	ret[n] = '\0';
	name = strrchr(ret, '/');
	if (name == NULL || strncmp(name + 1, PREFIX, strlen(PREFIX)) != 0)
		return "";
	name += 1 + strlen(PREFIX);
	if (*name == '-')
		return name + 1;
	return tid == broker ? "broker" : "helper";
}

/*
 * Is this a call of the dynamic linker? Without memory it dies by SIGSEGV, in any
 * program.
 */
static bool is_linkers(pid_t tid, uint64_t pc)
{
	char path[64], line[PATH_MAX + 128];
	bool found = false;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)tid);
	maps = fopen(path, "r");
	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && pc >= start &&
		    pc < end)
			found = strstr(line, "/ld-") != NULL;
	}
	if (maps != NULL)
		(void)fclose(maps);
	return found;
}

static void write_report(const char *mode, const char *format, ...)
{
	va_list arguments;
	FILE *file = fopen(report_path, mode);

	need(file != NULL);
	va_start(arguments, format);
	(void)vfprintf(file, format, arguments);
	va_end(arguments);
	need(fclose(file) == 0);
}

static void count(const char *process, const struct seccomp_data *data)
{
	const uint64_t request = request_of(data);
	struct counted *c = counted;

	while (c < counted + n_counted &&
	       (c->call != data->nr || c->request != request ||
		strcmp(c->process, process) != 0))
		c++;
	if (c == counted + n_counted) {
		need(n_counted++ < KINDS_MAX);
		*c = (struct counted){.call = data->nr, .request = request};
		(void)snprintf(c->process, sizeof(c->process), "%s", process);
	}
	c->n++;
}

static void write_counts(void)
{
	write_report("w", "%s", "");
	for (const struct counted *c = counted; c < counted + n_counted; c++) {
		char *name = seccomp_syscall_resolve_num_arch(
			SCMP_ARCH_NATIVE, c->call);

		if (name == NULL)
			continue;
		if (c->request == NO_REQUEST)
			write_report("a", "%s %s - %lu\n", c->process, name,
				     c->n);
		else
			write_report("a", "%s %s %llu %lu\n", c->process, name,
				     (unsigned long long)c->request, c->n);
		free(name);
	}
	write_report("a", "end\n");
}

/* Is this the call that is to fail? */
static bool is_chosen(const char *process, const struct seccomp_data *data)
{
	if (rule.n == 0 || data->nr != rule.call ||
	    strcmp(process, rule.process) != 0 ||
	    (rule.request != NO_REQUEST && rule.request != request_of(data)))
		return false;
	return --rule.n == 0;
}

static void answer_call(int listener, const struct seccomp_notif *call)
{
	char path[PATH_MAX];
	struct seccomp_notif_resp response = {
		.id = call->id,
		.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE,
	};
	const char *process = process_of((pid_t)call->pid, path);

	if (call->data.nr == SYS_mmap &&
	    is_linkers((pid_t)call->pid, call->data.instruction_pointer))
		process = "";
	if (rule.counts) {
		if (*process != '\0')
			count(process, &call->data);
	} else if (is_chosen(process, &call->data)) {
		if (rule.error == 0) {
			(void)kill((pid_t)call->data.args[1], SIGKILL);
		} else {
			response.flags = 0;
			/* brk(2) of the kernel gives no errno: 0 is no break. */
			response.error =
				call->data.nr == SYS_brk ? 0 : -rule.error;
		}
		write_report("w", "failed %d %d\n", (int)call->pid,
			     rule.error == 0 ? (int)call->data.args[1] : 0);
	}
	/* ENOENT: the thread was killed meanwhile. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0)
		need(errno == ENOENT);
}

static void serve(int listener)
{
	struct pollfd calls = {.fd = listener, .events = POLLIN};
	struct seccomp_notif call;

	for (;;) {
		if (poll(&calls, 1, -1) < 0) {
			need(errno == EINTR);
			continue;
		}
		/* All processes with the filter have ended. */
		if (calls.revents & (POLLHUP | POLLERR))
			return;
		memset(&call, 0, sizeof(call));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0)
			answer_call(listener, &call);
		else
			need(errno == ENOENT || errno == EINTR);
	}
}

/*
 * The other process. Its priority is above that of capture, so that a call takes
 * little longer than it would.
 */
static void supervise(int pidfd)
{
	const struct sched_param priority = {.sched_priority = PRIORITY};
	const struct timespec moment = timespec_of(100000);
	int fd, listener;

	(void)setpgid(0, 0);
	(void)sched_setscheduler(0, SCHED_FIFO, &priority);
	while ((fd = handover->fd) == -1) {
		struct pollfd ended = {.fd = pidfd, .events = POLLIN};

		if (poll(&ended, 1, 0) > 0)
			_exit(0);
		(void)nanosleep(&moment, NULL);
	}
	listener = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	need(listener >= 0);
	(void)close(pidfd);
	handover->taken = true;
	serve(listener);
	if (rule.counts)
		write_counts();
	_exit(0);
}

/* It is not a child of the program, which waits for its children. */
static void start_supervisor(void)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	pid_t pid;

	need(pidfd >= 0);
	pid = fork();
	need(pid >= 0);
	if (pid == 0) {
		pid = fork();
		need(pid >= 0);
		if (pid == 0)
			supervise(pidfd);
		_exit(0);
	}
	need(waitpid(pid, NULL, 0) == pid);
	(void)close(pidfd);
}

static int install(const struct sock_fprog *filter)
{
	const unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER |
				    SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags,
			    filter);
}

static void hand_over(void)
{
	struct sock_filter all[] = {
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_filter one[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)rule.call, 0,
			 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {
		.len = rule.counts ? 1 : 4,
		.filter = rule.counts ? all : one,
	};
	int fd = install(&filter);

	/* Without CAP_SYS_ADMIN. sentry-profd sets that itself, later. */
	if (fd < 0 && errno == EACCES &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		fd = install(&filter);
	if (fd < 0) {
		perror("seccomp");
		exit(UNABLE);
	}
	handover->fd = fd;
	while (!handover->taken)
		;
}

static void read_rule(char **argv)
{
	rule.process = argv[0];
	rule.call = seccomp_syscall_resolve_name(argv[1]);
	rule.request = strcmp(argv[2], "-") == 0 ? NO_REQUEST
						 : strtoul(argv[2], NULL, 10);
	rule.n = strtoul(argv[3], NULL, 10);
	rule.error = (int)strtol(argv[4], NULL, 10);
	if (rule.call < 0 || rule.n == 0) {
		fprintf(stderr, "no such call: %s %s\n", argv[1], argv[3]);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int at = 3;

	rule.counts = argc > 2 && strcmp(argv[2], "count") == 0;
	if (!rule.counts)
		at = 7;
	if (argc <= at)
		return 2;
	if (!rule.counts)
		read_rule(argv + 2);
	report_path = argv[1];
	broker = getpid();
	handover = mmap(NULL, sizeof(*handover), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(handover != MAP_FAILED);
	handover->fd = -1;
	start_supervisor();
	hand_over();
	(void)execv(argv[at], argv + at);
	perror(argv[at]);
	return EXIT_FAILURE;
}
