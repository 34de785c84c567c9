#include "daemon/broker/sigchld.h"

#include <sys/resource.h>
#include <sys/wait.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/reap.h"

static struct child *child_of(struct children *c, int32_t pid)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(c, i)) != NULL; i++)
		if (child->pid == pid)
			break;
	return child;
}

/*
 * A helper of b->parts.files or of discovery has ended. Its processor time is added to the
 * broker's; for discovery it is zeros, so that it is added only once.
 */
static void helper_reaped(struct broker *b, int32_t pid, const struct rusage *usage)
{
	static const struct rusage counted;

	files_reaped(b->parts.files, pid, usage);
	if (b->parts.discovery != NULL)
		discovery_reaped(b->parts.discovery, pid, &counted);
}

void sigchld_reap(struct broker *b)
{
	struct rusage usage;
	siginfo_t ended;
	int status;

	command_check_stopped(&b->command, &b->parts.state);
	for (;;) {
		struct child *child;

		/* WNOWAIT: the pid stays the child's until wait4() frees it. */
		ended.si_pid = 0;
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 || ended.si_pid == 0)
			return;
		child = child_of(&b->parts.children, ended.si_pid);
		if (child != NULL)
			child_read_last(child);
		if (wait4(ended.si_pid, &status, WNOHANG, &usage) <= 0)
			return;
		if (child != NULL)
			child_died(child, status, &usage);
		else if (ended.si_pid == b->command.pid)
			command_ended(&b->command, status);
		else if (!output_conversion_reaped(&b->conversion, ended.si_pid, status))
			helper_reaped(b, ended.si_pid, &usage);
	}
}
