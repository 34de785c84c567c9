#include "daemon/broker/children/restarts.h"

#include <sys/wait.h>

const char *restart_reason_name(enum restart_reason reason)
{
	static const char *const names[RESTART_REASON_N] = {
		[RESTART_SIGNAL] = "signal",
		[RESTART_STATUS] = "status",
		[RESTART_HEARTBEAT] = "heartbeat",
		[RESTART_MISBEHAVED] = "dismissed",
	};

	return reason < RESTART_REASON_N ? names[reason] : "";
}

void restarts_count(struct restarts *r, const struct child *child, int status)
{
	enum restart_reason reason = RESTART_STATUS;

	if (child->state == CHILD_HUNG)
		reason = RESTART_HEARTBEAT;
	else if (child->state == CHILD_KILLED)
		reason = RESTART_MISBEHAVED;
	else if (WIFSIGNALED(status))
		reason = RESTART_SIGNAL;
	r->n[child->type->kind][reason]++;
}
