/* Checks one process: whether it may be traced, and whether it can be profiled. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "daemon/ctl/doctor/doctor_checks.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"
#include "lib/base/procfs.h"

static void say_fault(struct doctor *d, enum process_fault fault, const struct process *p)
{
	if (fault == PROCESS_THREAD)
		doctor_say(d, FINDING_FAULT, "process",
			   "%d is a thread of process %d: use that pid", d->pid, p->pid);
	else
		doctor_say(d, FINDING_FAULT, "process", "%d %s", d->pid, process_fault_text(fault));
}

static void check_tracer(struct doctor *d, int32_t tracer)
{
	char refusal[REFUSAL_TEXT_SIZE];

	if (tracer == 0)
		doctor_say(d, FINDING_OK, "tracer", "no process traces it");
	else if (refusal_traced(d->pid, tracer, refusal) || tracer == d->capture_pid)
		doctor_say(d, FINDING_OK, "tracer", "sentry-profd traces it (pid %d)", tracer);
	else if (d->uses_perf)
		doctor_say(d, FINDING_OK, "tracer",
			   "process %d traces it, and sampler = perf needs no tracer", tracer);
	else
		doctor_say(d, FINDING_FAULT, "tracer", "%s", refusal);
}

/* Opening /proc/PID/mem has the same permission check as ptrace(2), Yama's included. */
static void check_access(struct doctor *d, uint32_t uid)
{
	int fd = open(procfs_path(d->pid, "mem").text, O_RDONLY | O_CLOEXEC);
	char refusal[REFUSAL_TEXT_SIZE];

	if (fd >= 0) {
		doctor_say(d, FINDING_OK, "permission", "you may trace process %d of uid %u",
			   d->pid, uid);
	} else if (d->may_trace || d->is_profiled) {
		doctor_say(d, FINDING_OK, "permission",
			   "you may not trace process %d of uid %u, but the daemon may", d->pid,
			   uid);
	} else {
		refusal_not_permitted(d->pid, uid, refusal);
		doctor_say(d, FINDING_FAULT, "permission", "%s", refusal);
	}
	close_fd(&fd);
}

/* Returns false after a finding if the program cannot be profiled. */
static bool check_class(struct doctor *d)
{
	unsigned char ident[EI_NIDENT] = {0};
	int fd = open(procfs_path(d->pid, "exe").text, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0) {
		doctor_say(d, FINDING_WARNING, "program", "its file cannot be opened: %s",
			   strerror(errno));
		return true;
	}
	n = pread(fd, ident, sizeof(ident), 0);
	close_fd(&fd);
	if (n == sizeof(ident) && ident[EI_CLASS] == ELFCLASS32) {
		doctor_say(d, FINDING_FAULT, "program",
			   "it is a 32-bit program: only 64-bit programs can be "
			   "profiled");
		return false;
	}
	doctor_say(d, FINDING_OK, "program", "it is a 64-bit program");
	return true;
}

bool doctor_target(struct doctor *d)
{
	struct process look;
	enum process_fault fault = process_look(d->pid, &look);

	if (fault != PROCESS_OK && fault != PROCESS_TRACED) {
		say_fault(d, fault, &look);
		return false;
	}
	close_fd(&look.pidfd);
	check_tracer(d, fault == PROCESS_TRACED ? look.tracer : 0);
	check_access(d, look.uid);
	return check_class(d);
}
