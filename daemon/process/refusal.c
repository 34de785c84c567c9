#include "daemon/process/refusal.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/privileges.h"

#define YAMA "/proc/sys/kernel/yama/ptrace_scope"

/* Advice for a process that another sentry-profd profiles. Takes the pid twice. */
#define ADVICE_STACK_RECORD                                                  \
	"sentry-profctl stack %d, or record %d -o profile.html, shows what " \
	"it does, if that daemon has a socket"

#define WRITE(text, ...) (void)snprintf(text, REFUSAL_TEXT_SIZE, __VA_ARGS__)

/*
 * Returns Yama's scope. 1: only ancestors and root may trace; 2: only root; 3: no process
 * (Documentation/admin-guide/LSM/Yama.rst).
 */
static char yama_scope(void)
{
	FILE *file = fopen(YAMA, "re");
	int c = file == NULL ? '0' : fgetc(file);

	if (file != NULL)
		(void)fclose(file);
	return (char)c;
}

/*
 * Returns true if this process has CAP_SYS_PTRACE in its own user namespace. The target can be in
 * another one.
 */
static bool may_trace_all(void)
{
	capability_set have;

	return privileges_effective(&have) == 0 && (have & CAPABILITY(CAP_SYS_PTRACE)) != 0;
}

/*
 * Returns true if capture may read all files, because it gets the permitted capabilities of this
 * process.
 */
static bool may_read_all(void)
{
	capability_set have;

	return privileges_permitted(&have) == 0 && privileges_for_reading(have) != 0;
}

void refusal_not_permitted(int32_t pid, uint32_t uid, char ret[REFUSAL_TEXT_SIZE])
{
	char scope = yama_scope();

	if (scope == '3')
		WRITE(ret,
		      "not permitted to trace process %d: Yama forbids it "
		      "to all users, root included, until the next boot (" YAMA " is 3)",
		      pid);
	else if (may_trace_all() && uid != geteuid() && !may_read_all())
		WRITE(ret,
		      "not permitted to read the state of process %d, "
		      "which runs as uid %u: root needs "
		      "CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE for it; in a "
		      "container, start the container with --cap-add "
		      "DAC_READ_SEARCH",
		      pid, uid);
	else if (may_trace_all())
		WRITE(ret,
		      "not permitted to trace process %d, although "
		      "CAP_SYS_PTRACE is present: a security module (AppArmor, "
		      "SELinux), a seccomp filter or a user namespace "
		      "forbids it",
		      pid);
	else if (geteuid() == 0)
		WRITE(ret,
		      "not permitted to trace process %d: root needs "
		      "CAP_SYS_PTRACE for it; in a container, start the "
		      "container with --cap-add SYS_PTRACE",
		      pid);
	else if (uid == geteuid() && scope != '0')
		WRITE(ret,
		      "not permitted to trace process %d: Yama allows it "
		      "to root only (" YAMA " is %c); run sentry-profd as "
		      "root",
		      pid, scope);
	else
		WRITE(ret,
		      "not permitted to trace process %d, which runs as uid %u: only root "
		      "may, and that user if the process is not set-user-ID and is dumpable; "
		      "run sentry-profd as root (Yama or a container may still forbid it)",
		      pid, uid);
}

static void log_not_permitted(int32_t pid, uint32_t uid)
{
	char text[REFUSAL_TEXT_SIZE];

	refusal_not_permitted(pid, uid, text);
	log_error("%s", text);
}

/* Returns true if name is that of another sentry-profd's capture, cut off by the kernel. */
static bool is_capture(const char *name)
{
	return strcmp(name, "sentry-profd-ca") == 0;
}

bool refusal_traced(int32_t pid, int32_t tracer, char ret[REFUSAL_TEXT_SIZE])
{
	char name[PROCESS_NAME_SIZE];

	process_name(tracer, name);
	if (is_capture(name))
		WRITE(ret, "process %d is profiled by another sentry-profd: " ADVICE_STACK_RECORD,
		      pid, pid, pid);
	else
		WRITE(ret,
		      "process %d is already traced by %s (pid %d): a process can have one tracer; "
		      "end that tracer first",
		      pid, name, tracer);
	return is_capture(name);
}

static void log_traced(int32_t pid, int32_t tracer)
{
	char text[REFUSAL_TEXT_SIZE];

	(void)refusal_traced(pid, tracer, text);
	log_error("%s", text);
}

void refusal_log_traced_now(int32_t pid, int32_t tracer)
{
	char name[PROCESS_NAME_SIZE];

	if (tracer == 0) {
		log_warning("process %d has a thread that is traced by another process now: "
			    "profiling starts when that tracer detaches",
			    pid);
		return;
	}
	process_name(tracer, name);
	if (is_capture(name))
		log_warning("process %d is profiled by another sentry-profd "
			    "now: " ADVICE_STACK_RECORD
			    "; profiling starts here when that daemon detaches",
			    pid, pid, pid);
	else
		log_warning("process %d is traced by %s (pid %d) now: profiling starts "
			    "when that tracer detaches",
			    pid, name, tracer);
}

static void log_gone(int32_t pid)
{
	log_error("no process %d: nothing runs here with this pid", pid);
}

void refusal_log_leak_check(int32_t pid, bool is_held, bool is_error, bool is_asan)
{
	static const char why[] =
		"has LeakSanitizer, which does not work in a traced process and would end it "
		"with an error: switch it off";
	const char *off = is_asan ? "ASAN_OPTIONS=detect_leaks=0" : "LSAN_OPTIONS=detect_leaks=0";
	char name[PROCESS_NAME_SIZE];

	if (is_held) {
		log_error("the command is not started: it %s (%s), or profile it all the same "
			  "(--leak-check attach)",
			  why, off);
		return;
	}
	process_name(pid, name);
	if (is_error)
		log_error("process %d (%s) is not profiled: it %s (start it with %s), or profile "
			  "it all the same (--leak-check attach)",
			  pid, name, why, off);
	else
		log_warning("process %d (%s) is not profiled: it %s (start it with %s), or profile "
			    "it all the same (leak_check = attach)",
			    pid, name, why, off);
}

void refusal_log_ended(int32_t pid)
{
	log_error("process %d has ended before it could be profiled", pid);
}

void refusal_log_not_profiled(int32_t pid, bool traced)
{
	log_error("process %d was not profiled: %s", pid,
		  traced ? "another process traced it all the time"
			 : "sentry-profd ended before it could attach");
}

int refusal_log_look(enum process_fault fault, int32_t pid, const struct process *p)
{
	char name[PROCESS_NAME_SIZE];

	switch (fault) {
	case PROCESS_OK:
		return 0;
	case PROCESS_GONE:
		log_gone(pid);
		return -ESRCH;
	case PROCESS_KERNEL_THREAD:
		process_name(pid, name);
		log_error("process %d (%s) %s", pid, name, process_fault_text(fault));
		return -EINVAL;
	case PROCESS_ZOMBIE:
		log_error("process %d %s", pid, process_fault_text(fault));
		return -ESRCH;
	case PROCESS_THREAD:
		log_error("%d is a thread of process %d: give --pid %d", pid, p->pid, p->pid);
		return -EINVAL;
	case PROCESS_TRACED:
		log_traced(pid, p->tracer);
		return -EBUSY;
	case PROCESS_UNREADABLE:
	case PROCESS_SHORTAGE:
		log_error("process %d %s", pid, process_fault_text(fault));
		return fault == PROCESS_SHORTAGE ? -EMFILE : -EACCES;
	}
	return -EINVAL;
}

static void log_traced_or_not_permitted(int32_t pid, uint32_t uid, int error)
{
	struct process look;
	enum process_fault fault = process_look(pid, &look);

	close_fd(&look.pidfd);
	if (fault == PROCESS_TRACED || error == EBUSY)
		log_traced(pid, look.tracer);
	else
		log_not_permitted(pid, uid);
}

/*
 * Returns the hard limit of descriptors. Capture inherits the limit and raises its soft limit to
 * it.
 */
static unsigned long long descriptors_max(void)
{
	struct rlimit files = {0};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	return (unsigned long long)files.rlim_max;
}

bool refusal_log_threads(int32_t pid, uint64_t n, int error)
{
	if (error == EMFILE)
		log_warning("%llu threads of process %d are not sampled: a "
			    "thread takes two descriptors, and the hard limit "
			    "is %llu; start sentry-profd with a higher one "
			    "(ulimit -Hn, LimitNOFILE=)",
			    (unsigned long long)n, pid, descriptors_max());
	else if (error == ENFILE)
		log_warning("%llu threads of process %d are not sampled: the "
			    "machine has too many open files; raise "
			    "/proc/sys/fs/file-max",
			    (unsigned long long)n, pid);
	return error == EMFILE || error == ENFILE;
}

void refusal_log_attach(int32_t pid, uint32_t uid, int error)
{
	switch (error) {
	case ESRCH:
		log_gone(pid);
		return;
	case EACCES:
		log_not_permitted(pid, uid);
		return;
	case EPERM:
	case EBUSY:
		log_traced_or_not_permitted(pid, uid, error);
		return;
	case ENOEXEC:
		log_error("process %d is a 32-bit program: only 64-bit ones "
			  "can be profiled",
			  pid);
		return;
	case EMFILE:
		log_error("cannot attach to process %d: the hard limit of "
			  "descriptors is %llu; start sentry-profd with a "
			  "higher one (ulimit -Hn, LimitNOFILE=)",
			  pid, descriptors_max());
		return;
	default:
		log_error("cannot attach to process %d: %s; sentry-profctl doctor %d may know more",
			  pid, strerror(error), pid);
	}
}
