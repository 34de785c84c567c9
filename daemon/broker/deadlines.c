#include "daemon/broker/deadlines.h"

#include <sys/socket.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/ship.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/targets/held_execs.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/config/config.h"

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
static void check_in_capture(struct children *c, struct run *run)
{
	const bool owes = run->in_capture && c->capture.pid != 0 &&
			  (run->phase == RUN_WAITING || run->phase == RUN_STOPPING);

	if (!count_overdue(&run->capture_overdue_checks, owes))
		return;
	if (run->capture_overdue_checks == OVERDUE_CHECKS && run->phase == RUN_STOPPING &&
	    run->unwind != NULL && run->unwind->child.pid != 0)
		child_fail(&run->unwind->child, "makes no room in its ring");
	else if (run->capture_overdue_checks == OVERDUE_CHECKS ||
		 run->capture_overdue_checks >= 2 * OVERDUE_CHECKS)
		child_fail(&c->capture, "does not answer");
}

static void check_target(struct run *run)
{
	const bool owes = run->unwind != NULL && run->unwind->child.pid != 0 &&
			  (run->phase == RUN_CLOSING || run->session == SESSION_ASKED);

	if (count_overdue(&run->overdue_checks, owes))
		child_fail(&run->unwind->child, "does not answer");
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

void deadlines_check_answers(struct broker *b)
{
	struct child *child;

	for (size_t i = 0; (child = child_at(&b->modules.children, i)) != NULL; i++)
		check_child(child);
	FOR_EACH_RUN (run, &b->modules.targets) {
		check_target(run);
		check_in_capture(&b->modules.children, run);
	}
	for (size_t i = 0; i < b->modules.children.n_ships; i++)
		check_ship(b->modules.children.ships[i]);
	for (size_t i = 0; i < b->modules.children.n_unwinds; i++)
		check_ring(&b->modules.children, b->modules.children.unwinds[i]);
}

static bool unwind_is_needed(struct broker *b, const struct unwind *u)
{
	FOR_EACH_RUN (run, &b->modules.targets)
		if (run->unwind == u)
			return true;
	return held_execs_need(&b->modules.targets, u);
}

/* Closes the socket, which makes the process end. A process that died before is not restarted. */
static void unwind_leaves(struct unwind *u)
{
	u->child.is_leaving = true;
	u->child.restart_ns = 0;
	child_close(&u->child);
}

/* Returns true if the process stays although it is not needed. */
static bool check_idle_unwind(struct broker *b, struct unwind *u, uint64_t now_ns)
{
	if (u->child.is_leaving)
		return false;
	if (unwind_is_needed(b, u))
		u->idle_since_ns = now_ns;
	else if (now_ns - u->idle_since_ns >= IDLE_NS &&
		 !options_prints_table(&b->modules.state.options))
		unwind_leaves(u);
	return !u->child.is_leaving && u->idle_since_ns != now_ns;
}

static void longest_idle_leaves(const struct children *c)
{
	struct unwind *longest = NULL;

	for (size_t i = 0; i < c->n_unwinds; i++) {
		struct unwind *u = c->unwinds[i];

		if (!u->child.is_leaving &&
		    (longest == NULL || u->idle_since_ns < longest->idle_since_ns))
			longest = u;
	}
	if (longest != NULL)
		unwind_leaves(longest);
}

static bool is_configured(const struct config *c, const struct ship *s)
{
	if (children_ship_is_for(s, c->implicit.dsn))
		return true;
	for (size_t k = 0; k < c->n_sections; k++)
		if (children_ship_is_for(s, c->sections[k].dsn))
			return true;
	return false;
}

static bool ship_is_needed(const struct broker *b, const struct ship *s, uint64_t now_ns)
{
	/* A ship that was needed may have a spool to empty. */
	const bool is_useful = s->only_probed_ns == 0 || now_ns - s->only_probed_ns < IDLE_NS;

	if (s->is_first || s->is_spotlight)
		return true;
	if (is_useful && is_configured(&b->modules.state.options.config, s))
		return true;
	for (size_t k = 0; k < b->modules.targets.n_instances; k++)
		if (b->modules.targets.instances[k]->ship == s)
			return true;
	return false;
}

/*
 * Seconds, at most, in which a leaving ship may deliver its chunks: fewer than OVERDUE_CHECKS,
 * after which it is killed.
 */
#define LEAVE_MAX_S 30

/*
 * Tells the ship to leave: it delivers its chunks or drops them, reports the losses to the
 * server, and ends. Chunks in its spool stay there, in case the DSN comes back
 * (daemon/ship/spool_dirs.h).
 */
static void ship_leaves(struct broker *b, struct ship *s)
{
	double timeout_s = b->modules.state.options.config.shutdown_timeout_s;

	if (timeout_s > LEAVE_MAX_S)
		timeout_s = LEAVE_MAX_S;
	ship_report_lost(s);
	ship_ask_to_finish(s, (uint64_t)(timeout_s * 1e9));
	s->child.is_leaving = true;
	s->child.restart_ns = 0;
	/* The ship has no process now: its envelopes are lost. */
	if (s->child.pid == 0)
		delivery_ship_gone(&b->modules.delivery, s);
}

static void check_idle_ship(struct broker *b, struct ship *s, uint64_t now_ns)
{
	if (!s->child.is_leaving && !ship_is_needed(b, s, now_ns))
		ship_leaves(b, s);
	/* The process ends when it reads the end of the socket. */
	if (s->child.is_leaving && s->child.fd >= 0 && s->n_in_flight == 0)
		(void)shutdown(s->child.fd, SHUT_WR);
}

void deadlines_end_unused_unwinds(struct broker *b, uint64_t now_ns)
{
	const struct children *c = &b->modules.children;
	const size_t n_free = array_size(c->unwinds) - c->n_unwinds;
	size_t n_idle = 0;

	for (size_t i = 0; i < c->n_unwinds; i++)
		n_idle += check_idle_unwind(b, c->unwinds[i], now_ns);
	for (; n_idle > min_size(IDLE_MAX, n_free); n_idle--)
		longest_idle_leaves(c);
}

void deadlines_end_unused_ships(struct broker *b, uint64_t now_ns)
{
	for (size_t i = 0; i < b->modules.children.n_ships; i++)
		check_idle_ship(b, b->modules.children.ships[i], now_ns);
}
