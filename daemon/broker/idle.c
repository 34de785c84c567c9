#include "daemon/broker/idle.h"

#include <sys/socket.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/ship.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/targets/held_execs.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/config/config.h"

static bool unwind_is_needed(struct broker *b, const struct unwind *u)
{
	FOR_EACH_TARGET (t, &b->parts.targets)
		if (t->unwind == u)
			return true;
	return held_execs_need(&b->parts.targets, u);
}

/* Closes the socket, which makes the process end. A process that died before is not restarted. */
static void unwind_leaves(struct unwind *u)
{
	u->child.is_leaving = true;
	u->child.restart_ns = 0;
	child_close(&u->child);
}

/* Returns true if the process stays although it is not needed. */
static bool check_unwind(struct broker *b, struct unwind *u, uint64_t now_ns)
{
	if (u->child.is_leaving)
		return false;
	if (unwind_is_needed(b, u))
		u->idle_since_ns = now_ns;
	else if (now_ns - u->idle_since_ns >= IDLE_NS)
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
	if (ship_is_for(s, c->implicit.dsn))
		return true;
	for (size_t k = 0; k < c->n_targets; k++)
		if (ship_is_for(s, c->targets[k].dsn))
			return true;
	return false;
}

static bool ship_is_needed(const struct broker *b, const struct ship *s, uint64_t now_ns)
{
	/* A ship that was needed may have a spool to empty. */
	const bool is_useful = s->only_probed_ns == 0 || now_ns - s->only_probed_ns < IDLE_NS;

	if (s->is_first || s->is_spotlight)
		return true;
	if (is_useful && is_configured(&b->parts.state.options.config, s))
		return true;
	for (size_t k = 0; k < b->parts.targets.n_instances; k++)
		if (b->parts.targets.instances[k]->ship == s)
			return true;
	return false;
}

/*
 * Seconds, at most, in which a leaving ship may deliver its chunks: fewer than overdue.c waits
 * for its end.
 */
#define LEAVE_MAX_S 30

/*
 * Tells the ship to leave: it delivers its chunks or drops them, reports the losses to the
 * server, and ends. Chunks in its spool stay there, in case the DSN comes back
 * (daemon/ship/spool_dirs.h).
 */
static void ship_leaves(struct broker *b, struct ship *s)
{
	double timeout_s = b->parts.state.options.config.shutdown_timeout_s;

	if (timeout_s > LEAVE_MAX_S)
		timeout_s = LEAVE_MAX_S;
	ship_report_lost(s);
	ship_ask_to_finish(s, (uint64_t)(timeout_s * 1e9));
	s->child.is_leaving = true;
	s->child.restart_ns = 0;
	/* The ship has no process now: its envelopes are lost. */
	if (s->child.pid == 0)
		delivery_ship_gone(&b->parts.delivery, s);
}

static void check_ship(struct broker *b, struct ship *s, uint64_t now_ns)
{
	if (!s->child.is_leaving && !ship_is_needed(b, s, now_ns))
		ship_leaves(b, s);
	/* The process ends when it reads the end of the socket. */
	if (s->child.is_leaving && s->child.fd >= 0 && s->n_in_flight == 0)
		(void)shutdown(s->child.fd, SHUT_WR);
}

void idle_check_unwinds(struct broker *b, uint64_t now_ns)
{
	const struct children *c = &b->parts.children;
	const size_t n_free = array_size(c->unwinds) - c->n_unwinds;
	size_t n_idle = 0;

	for (size_t i = 0; i < c->n_unwinds; i++)
		n_idle += check_unwind(b, c->unwinds[i], now_ns);
	for (; n_idle > min_size(IDLE_MAX, n_free); n_idle--)
		longest_idle_leaves(c);
}

void idle_check_ships(struct broker *b, uint64_t now_ns)
{
	for (size_t i = 0; i < b->parts.children.n_ships; i++)
		check_ship(b, b->parts.children.ships[i], now_ns);
}
