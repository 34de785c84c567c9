#include "daemon/restarts.h"

#include <sys/wait.h>

#include "daemon/broker.h"

const char *restart_of_name(enum restart_of of)
{
	switch (of) {
	case RESTART_CAPTURE:
		return "capture";
	case RESTART_UNWIND:
		return "unwind";
	case RESTART_SHIP:
		return "ship";
	case RESTART_OF_N:
		break;
	}
	return "";
}

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
	const enum restart_of of = child_kind(child);
	enum restart_reason reason = RESTART_STATUS;

	if (child->killed_ns != 0)
		reason = child->is_silent ? RESTART_HEARTBEAT
					  : RESTART_DISMISSED;
	else if (WIFSIGNALED(status))
		reason = RESTART_SIGNAL;
	b->restarts.n[of][reason]++;
}
