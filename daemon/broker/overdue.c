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
	const bool owes_ready = child->pid != 0 && child->state == CHILD_STARTS;

	if (count_overdue(&child->overdue_checks, owes_end || owes_ready))
		child_fail(child, owes_end ? "does not end" : "does not become ready");
}

/* Capture owes an answer to each MSG_RING_MAKE. */
static void check_ring(struct children *c, struct unwind *u)
{
	const bool owes = c->capture.pid != 0 && u->rings_awaited > 0;

	if (count_overdue(&u->ring_overdue_checks, owes))
		child_fail(&c->capture, "does not make a ring");
}

/*
 * Capture owes an answer to each MSG_TARGET_ADD and MSG_TARGET_REMOVE. The answer to the second one
 * can wait for the target's unwind process, which must make room in its ring for the target's
 * RECORD_END. So that process is killed first, and capture only if it does not answer then.
 */
static void check_in_capture(struct children *c, struct target *t)
{
	const bool owes = t->in_capture && c->capture.pid != 0 &&
			  (t->phase == TARGET_WAITING || t->phase == TARGET_STOPPING);

	if (!count_overdue(&t->capture_overdue_checks, owes))
		return;
	if (t->capture_overdue_checks == OVERDUE_CHECKS && t->phase == TARGET_STOPPING &&
	    t->unwind != NULL && t->unwind->child.pid != 0)
		child_fail(&t->unwind->child, "makes no room in its ring");
	else if (t->capture_overdue_checks == OVERDUE_CHECKS ||
		 t->capture_overdue_checks >= 2 * OVERDUE_CHECKS)
		child_fail(&c->capture, "does not answer");
}

static void check_target(struct target *t)
{
	const bool owes = t->unwind != NULL && t->unwind->child.pid != 0 &&
			  (t->phase == TARGET_CLOSING || t->session == SESSION_ASKED);

	if (count_overdue(&t->overdue_checks, owes))
		child_fail(&t->unwind->child, "does not answer");
}

static void check_ship(struct ship *s)
{
	if (s->child.fd < 0 || s->child.state != CHILD_READY)
		return;
	s->ping_checks++;
	if (s->ping_checks == OVERDUE_PING_CHECKS)
		child_send_id(&s->child, MSG_PING, 0);
	else if (s->ping_checks >= OVERDUE_PING_CHECKS + OVERDUE_CHECKS)
		child_fail(&s->child, "does not answer");
}

void overdue_check(struct broker *b)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(&b->parts.children, i)) != NULL; i++)
		check_child(child);
	FOR_EACH_TARGET (t, &b->parts.targets) {
		check_target(t);
		check_in_capture(&b->parts.children, t);
	}
	for (size_t i = 0; i < b->parts.children.n_ships; i++)
		check_ship(b->parts.children.ships[i]);
	for (size_t i = 0; i < b->parts.children.n_unwinds; i++)
		check_ring(&b->parts.children, b->parts.children.unwinds[i]);
}
