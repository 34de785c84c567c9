/* Checks the machine: what the kernel supports and what it permits. */
#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/common/degraded_kind.h"
#include "daemon/common/perf_events.h"
#include "daemon/common/privileges.h"
#include "daemon/ctl/doctor/doctor_checks.h"
#include "lib/base/clock.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"

/* docs/ARCHITECTURE.md, "The kernel". */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 10

/* Two for each thread: enough for a program of 2,000 threads and the daemon itself. */
#define DESCRIPTORS_MIN 4096

/* The date of this line: an earlier clock is wrong. */
#define CLOCK_EARLIEST_S UINT64_C(1763769600) /* 2025-11-22 */

/* PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

static void check_kernel(struct doctor *d)
{
	struct utsname name;
	int major = 0, minor = 0;

	if (uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2) {
		doctor_say(d, FINDING_WARNING, "kernel", "its version is unknown");
		return;
	}
	if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		doctor_say(d, FINDING_FAULT, "kernel",
			   "Linux %s is too old: 5.10 or newer is needed", name.release);
	else
		doctor_say(d, FINDING_OK, "kernel", "Linux %s", name.release);
	if (strcmp(name.machine, "x86_64") != 0 && strcmp(name.machine, "aarch64") != 0)
		doctor_say(d, FINDING_FAULT, "processor",
			   "%s: only programs for x86_64 and aarch64 can be profiled",
			   name.machine);
}

/* Returns the capabilities of the daemon if it has reported them, else those of this process. */
static capability_set capabilities_of(const struct doctor *d)
{
	capability_set own;

	if (d->has_capabilities)
		return d->capabilities;
	return privileges_effective(&own) < 0 ? 0 : own;
}

static void check_capabilities(struct doctor *d)
{
	struct degraded_kind_facts facts;
	enum degraded_kind found[DEGRADED_N];
	const capability_set own = capabilities_of(d);
	size_t n;

	if (d->has_capabilities && own == 0) {
		doctor_say(d, FINDING_WARNING, "capabilities",
			   "the daemon has none: it can profile only processes "
			   "of its own user");
		return;
	}
	if (!d->has_capabilities && geteuid() != 0 && !(own & CAPABILITY(CAP_SYS_PTRACE))) {
		doctor_say(d, FINDING_WARNING, "capabilities",
			   "you are not root: only your own processes can be "
			   "profiled; run this as root to see what "
			   "the service may do");
		return;
	}
	degraded_kind_facts_read(&facts);
	facts.have = own;
	n = degraded_kind_find(&facts, found);
	for (size_t i = 0; i < n && !d->has_capabilities; i++)
		doctor_say(d, found[i] == DEGRADED_SYS_PTRACE ? FINDING_FAULT : FINDING_WARNING,
			   "capabilities", "%s for you: %s (%s)",
			   degraded_kind_texts[found[i]].name, degraded_kind_texts[found[i]].effect,
			   degraded_kind_texts[found[i]].remedy);
	if (n == 0)
		doctor_say(d, FINDING_OK, "capabilities", "all that are needed: %s",
			   d->has_capabilities
				   ? "the daemon has them"
				   : "you have them, and so would a sentry-profd that you start");
}

static void check_yama(struct doctor *d)
{
	const bool has_ptrace =
		d->may_trace || (capabilities_of(d) & CAPABILITY(CAP_SYS_PTRACE)) != 0;
	char text[16];

	if (small_file_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) <
		    0 ||
	    text[0] == '0')
		doctor_say(d, FINDING_OK, "yama", "does not restrict tracing");
	else if (text[0] == '3')
		doctor_say(d, FINDING_FAULT, "yama",
			   "kernel.yama.ptrace_scope is 3: no process may trace "
			   "until the next boot; set it to 2 or less in "
			   "/etc/sysctl.d and reboot");
	else if (has_ptrace)
		doctor_say(d, FINDING_OK, "yama",
			   "kernel.yama.ptrace_scope is %c, which does not "
			   "restrict a process with CAP_SYS_PTRACE",
			   text[0]);
	else if (text[0] == '1')
		doctor_say(
			d, FINDING_WARNING, "yama",
			"kernel.yama.ptrace_scope is 1: without root sentry-profd can profile only "
			"what it starts (sentry-profd -- COMMAND)");
	else
		doctor_say(d, FINDING_FAULT, "yama",
			   "kernel.yama.ptrace_scope is %c: only root may "
			   "trace; run sentry-profd as root",
			   text[0]);
}

/*
 * Stops a child of ours and reads its registers and memory. Returns NULL, or the name of the
 * call that failed, with errno.
 */
static const char *try_tracing(pid_t child)
{
	struct user_regs_struct registers;
	struct iovec regs = {&registers, sizeof(registers)};
	char byte, *own = &byte;
	struct iovec to = {&byte, 1}, from = {own, 1};
	int status;

	if (ptrace(PTRACE_SEIZE, child, NULL, NULL) < 0)
		return "PTRACE_SEIZE";
	if (ptrace(PTRACE_INTERRUPT, child, NULL, NULL) < 0 ||
	    waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status))
		return "PTRACE_INTERRUPT";
	if (ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &regs) < 0)
		return "PTRACE_GETREGSET";
	/* The fork has this byte at the same address. */
	if (process_vm_readv(child, &to, 1, &from, 1, 0) != 1)
		return "process_vm_readv";
	return NULL;
}

static void check_tracing(struct doctor *d)
{
	const pid_t parent = getpid();
	pid_t child = fork();
	const char *refused;
	int error, status;

	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			(void)pause();
		_exit(0);
	}
	if (child < 0) {
		doctor_say(d, FINDING_WARNING, "tracing", "cannot be tested: fork: %s",
			   strerror(errno));
		return;
	}
	errno = 0;
	refused = try_tracing(child);
	error = errno;
	(void)kill(child, SIGKILL);
	while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status))
		continue;
	if (refused == NULL)
		doctor_say(d, FINDING_OK, "tracing", "a process of our own can be traced and read");
	else
		doctor_say(d, FINDING_FAULT, "tracing",
			   "%s fails for a child of our own: %s; a seccomp "
			   "filter or a security module forbids it (in a "
			   "container: --cap-add SYS_PTRACE, or "
			   "--security-opt seccomp=unconfined)",
			   refused, strerror(error));
}

/* The daemon may have fewer rights than this process: it says so itself at its start. */
static void check_samplers(struct doctor *d)
{
	const int r = perf_events_try();

	if (d->uses_perf)
		doctor_say(d, FINDING_OK, "samplers", "the daemon uses perf");
	else if (r == 0)
		doctor_say(d, FINDING_OK, "samplers", "ptrace and perf: both are possible here");
	else
		doctor_say(d, FINDING_OK, "samplers", "ptrace; perf is not possible here: %s (%s)",
			   perf_events_fault(r), strerror(-r));
}

/* Returns the number after a key of /proc/self/status, or -1 without that key. */
static long own_status(const char *key)
{
	char text[PROCFS_STATUS_MAX];
	uint64_t number;

	return small_file_read(AT_FDCWD, "/proc/self/status", text, sizeof(text)) == 0 &&
			       procfs_numbers(text, key, 10, &number, 1) == 1
		       ? (long)number
		       : -1;
}

static void check_seccomp(struct doctor *d)
{
	const long mode = own_status("\nSeccomp:");

	if (mode < 0 || access("/proc/sys/kernel/seccomp/actions_avail", F_OK) < 0)
		doctor_say(d, FINDING_FAULT, "seccomp",
			   "the kernel has no seccomp filters "
			   "(CONFIG_SECCOMP_FILTER): the processes that parse "
			   "files of targets need them");
	else if (mode > 0)
		doctor_say(d, FINDING_OK, "seccomp",
			   "the kernel has filters, and one is active here (of "
			   "a container): see \"tracing\" for what it forbids");
	else
		doctor_say(d, FINDING_OK, "seccomp", "the kernel has filters");
}

/* Checks the limit of sentry-profd-capture, or else of this process. */
static void check_descriptors(struct doctor *d)
{
	const int32_t pid = d->capture_pid != 0 ? d->capture_pid : getpid();
	uint64_t limits[2]; /* soft, hard */
	char text[PROCFS_TEXT_MAX];

	if (small_file_read(AT_FDCWD, procfs_path(pid, "limits").text, text, sizeof(text)) < 0 ||
	    procfs_numbers(text, "\nMax open files", 10, limits, 2) != 2)
		return;
	if (limits[1] < DESCRIPTORS_MIN)
		doctor_say(d, FINDING_WARNING, "descriptors",
			   "the hard limit is %llu, and each thread needs two: "
			   "raise it (ulimit -Hn, LimitNOFILE=)",
			   (unsigned long long)limits[1]);
	else
		doctor_say(d, FINDING_OK, "descriptors", "the hard limit is %llu",
			   (unsigned long long)limits[1]);
}

static void check_proc(struct doctor *d)
{
	char text[64];

	/* Process 1 always exists and usually belongs to another user. */
	if (small_file_read(AT_FDCWD, "/proc/1/stat", text, sizeof(text)) < 0 && !d->may_trace)
		doctor_say(d, FINDING_WARNING, "/proc",
			   "shows no processes of other users (hidepid): they "
			   "are not found");
	else if (!d->is_elsewhere && procfs_link("/proc/self/ns/pid", text, sizeof(text)) == 0 &&
		 strcmp(text, FIRST_PID_NAMESPACE) != 0)
		doctor_say(
			d, FINDING_WARNING, "/proc",
			"shows only the processes of this pid namespace, and no others are found "
			"(for those of the host start the container with --pid=host, in Kubernetes "
			"hostPID: true)");
	else
		doctor_say(d, FINDING_OK, "/proc", "shows all processes");
}

static void check_clock(struct doctor *d)
{
	struct timex state = {0};
	int r = adjtimex(&state);

	if (clock_wall_ns() / NS_PER_SEC < CLOCK_EARLIEST_S)
		doctor_say(d, FINDING_FAULT, "clock",
			   "it is set to the past: Sentry rejects such "
			   "profiles; set it (timedatectl set-ntp true)");
	else if (r < 0)
		doctor_say(d, FINDING_WARNING, "clock",
			   "cannot find out whether it is synchronized: %s", strerror(errno));
	else if (r == TIME_ERROR || (state.status & STA_UNSYNC))
		doctor_say(d, FINDING_WARNING, "clock",
			   "it is not synchronized: profiles may be shown with "
			   "the wrong transactions (timedatectl set-ntp true)");
	else
		doctor_say(d, FINDING_OK, "clock", "is synchronized");
}

void doctor_host(struct doctor *d)
{
	check_kernel(d);
	check_capabilities(d);
	check_yama(d);
	check_tracing(d);
	check_samplers(d);
	check_seccomp(d);
	check_descriptors(d);
	check_proc(d);
	check_clock(d);
}
