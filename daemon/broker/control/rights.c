#include "daemon/broker/control/rights.h"

#include "daemon/broker/targets/instance.h"
#include "daemon/process/may_trace.h"
#include "daemon/process/owner.h"
#include "daemon/process/peer.h"
#include "daemon/process/process.h"

bool rights_is_own(const struct peer *peer, int32_t pid)
{
	struct owner owner;

	return may_trace(peer, pid) && owner_read(pid, &owner) == 0 && owner.kind != OWNER_MIXED;
}

bool rights_is_itself(const struct peer *peer, const struct instance *i)
{
	return peer->pid == i->pid && peer->start_ticks == i->start_ticks && peer_speaks(peer);
}

bool rights_may_control(const struct peer *peer, const struct instance *i)
{
	if (peer->is_operator)
		return true;
	/* The owner of a process that has a run is at most a second old. */
	return (i->run == NULL || i->owner.uid == peer->uid) && rights_is_own(peer, i->pid);
}

struct instance *rights_find_instance(struct targets *ts, const struct peer *peer, int32_t pid,
				      struct control_answer *ret)
{
	struct instance *i = instance_of_pid(ts, pid);
	struct process look;
	enum process_fault fault;

	if (i != NULL && !rights_is_itself(peer, i) && !rights_may_control(peer, i)) {
		ret->m.result = PROTOCOL_DENIED;
		return NULL;
	}
	if (i != NULL)
		return i;
	fault = process_look(pid, &look);
	close_fd(&look.pidfd);
	ret->m.result = fault == PROCESS_GONE || fault == PROCESS_ZOMBIE ? PROTOCOL_NO_PROCESS
									 : PROTOCOL_NO_TARGET;
	return NULL;
}
