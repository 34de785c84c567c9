#include "daemon/restarts.h"

#include <sys/wait.h>

#include "daemon/broker.h"

const char *restart_reason_name(enum restart_reason reason)
{
	switch (reason) {
	case RESTART_SIGNAL:
		return "signal";
	case RESTART_STATUS:
		return "status";
	case RESTART_HEARTBEAT:
		return "heartbeat";
	case RESTART_DISMISSED:
		return "dismissed";
	case RESTART_REASON_N:
		break;
	}
	return "";
}

void restarts_count(struct broker *b, const struct child *child, int status)
{
	enum restart_reason reason = RESTART_STATUS;

	if (child->state == CHILD_SILENT)
		reason = RESTART_HEARTBEAT;
	else if (child->state == CHILD_KILLED)
		reason = RESTART_DISMISSED;
	else if (WIFSIGNALED(status))
		reason = RESTART_SIGNAL;
	b->restarts.n[child->type->kind][reason]++;
}
