#include "daemon/broker/overdue.h"

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"

/* Counts a check at which the answer was due. Returns true at OVERDUE_LOOKS in a row. */
static bool count(uint32_t *looks, bool owes)
{
	*looks = owes ? *looks + 1 : 0;
	return *looks >= OVERDUE_LOOKS;
}

static void look_at_child(struct child *child)
{
	const bool owes_end = child->pid != 0 && (child->fd < 0 || child->is_leaving);

	if (count(&child->owed_looks, owes_end))
		child_fail(child, "does not end");
}

static void look_at_target(struct target *t)
{
	const bool owes = t->unwind != NULL && t->unwind->child.pid != 0 &&
			  (t->phase == TARGET_CLOSING || t->session == SESSION_ASKED);

	if (count(&t->owed_looks, owes))
		child_fail(&t->unwind->child, "does not answer");
}

void overdue_look(struct broker *b)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(&b->parts.children, i)) != NULL; i++)
		look_at_child(child);
	FOR_EACH_TARGET (t, &b->parts.targets)
		look_at_target(t);
}
