#include "daemon/broker/overdue.h"

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"

/* Counts a check at which the answer was due. Returns true at OVERDUE_CHECKS in a row. */
static bool count_overdue(uint32_t *checks, bool owes)
{
	*checks = owes ? *checks + 1 : 0;
	return *checks >= OVERDUE_CHECKS;
}

static void check_child(struct child *child)
{
	const bool owes_end = child->pid != 0 && (child->fd < 0 || child->is_leaving);

	if (count_overdue(&child->overdue_checks, owes_end))
		child_fail(child, "does not end");
}

static void check_target(struct target *t)
{
	const bool owes = t->unwind != NULL && t->unwind->child.pid != 0 &&
			  (t->phase == TARGET_CLOSING || t->session == SESSION_ASKED);

	if (count_overdue(&t->overdue_checks, owes))
		child_fail(&t->unwind->child, "does not answer");
}

void overdue_check(struct broker *b)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(&b->parts.children, i)) != NULL; i++)
		check_child(child);
	FOR_EACH_TARGET (t, &b->parts.targets)
		check_target(t);
}
