#include "daemon/broker/children/children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/children/ship.h"
#include "daemon/broker/files/quarantine.h"
#include "daemon/broker/state/forks.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/common/spawn.h"
#include "daemon/config/accounts.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_io.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/page.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "proto/dsn.h"

static const char *const no_environment[] = {NULL};

static const struct msg_init no_files;

/*
 * Starts a process and sends MSG_INIT with init_fds, which stay the caller's. of_ship: the
 * members of MSG_INIT that only ships use.
 */
static int start_process(struct child *child, const int *init_fds, size_t n_init_fds,
			 const struct msg_init *of_ship)
{
	struct children *c = child->children;
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT),
		.number = msg_number(),
		.uid = PRIVILEGES_KEEP_ID,
		.gid = PRIVILEGES_KEEP_ID,
		.debug = c->state->options.config.debug,
		.follow_children = c->state->options.children,
		.uses_perf = c->state->options.config.sampler == SAMPLER_PERF,
		.files = of_ship->files,
		.nice_steps = of_ship->nice_steps,
		.spool_dsn = of_ship->spool_dsn,
		.spool_is_first = of_ship->spool_is_first,
		.spool_bytes = of_ship->spool_bytes,
		.spool_count = of_ship->spool_count,
		.spool_age_s = of_ship->spool_age_s,
		.seccomp_kill = getenv("SENTRY_PROFD_SECCOMP_KILL") != NULL,
	};
	int log_fd = -1, r;

	if (c->state->privileged)
		account_ids(child->type->account, &init.uid, &init.gid);
	r = child_log_open(child, &log_fd);
	if (r == 0)
		r = spawn_child(child->type->name, child->type->environment, log_fd, &child->pid,
				&child->fd);
	close_fd(&log_fd);
	if (r < 0) {
		child_log_close(child);
		if (child->failures == 0)
			log_error("%s cannot be started: %s", child->type->name, strerror(-r));
		return r;
	}
	forks_add(child->pid);
	child->state = CHILD_STARTS;
	child->overdue_checks = 0;
	child->messages_full_ns = 0;
	child->is_slowed = false;
	r = loop_add(c->state->loop, child->fd, child_on_readable, child, &child->source);
	if (r < 0) {
		child_fail(child, "cannot be added to the event loop");
		return r;
	}
	child_send(child, &init, sizeof(init), init_fds, n_init_fds);
	return 0;
}

static int new_heartbeat(struct children *c, int *ret_fd)
{
	const void *page;
	int r = page_new("heartbeat", sizeof(*c->heartbeat), &page, ret_fd);

	if (r < 0)
		return r;
	page_free(c->heartbeat, sizeof(*c->heartbeat));
	c->heartbeat = page;
	return 0;
}

static int start_unwind(struct child *child)
{
	struct unwind *u = (struct unwind *)child;
	int fd, r;

	/* The ring is made when the process knows all its targets. */
	u->ring_due = true;
	r = quarantine_page_new(&u->reading, &fd);
	if (r < 0) {
		if (u->child.failures == 0)
			log_error("%s is not started: making the memory that it shares with the "
				  "broker failed: %s; the start is tried again",
				  u->child.type->name, strerror(-r));
		return r;
	}
	r = start_process(child, &fd, 1, &no_files);
	close_fd(&fd);
	return r;
}

int children_make_ring(struct children *c, struct unwind *u)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_RING_MAKE), .id = u->id};
	int pair[2], r;

	close_fd(&u->link_fd);
	r = ipc_pair(pair);
	if (r < 0)
		return r;
	child_send(&c->capture, &m, sizeof(m), &pair[0], 1);
	close_fd(&pair[0]);
	u->link_fd = pair[1];
	u->rings_awaited++;
	return 0;
}

static int start_capture(struct child *child)
{
	struct children *c = child->children;
	int fd = -1, r;

	r = new_heartbeat(c, &fd);
	if (r < 0) {
		if (c->capture.failures == 0)
			log_error("%s is not started: making the memory that it shares with the "
				  "broker failed: %s; the start is tried again",
				  c->capture.type->name, strerror(-r));
		return r;
	}
	r = start_process(child, &fd, 1, &no_files);
	close_fd(&fd);
	for (size_t i = 0; i < c->n_unwinds; i++) {
		c->unwinds[i]->rings_awaited = 0;
		c->unwinds[i]->ring_overdue_checks = 0;
		c->unwinds[i]->ring_due = true;
	}
	return r;
}

/*
 * Sentry's own nginx answers so in each upgrade. A spool keeps the chunks until that is over; in
 * memory they would make newer ones wait.
 */
static bool retries_5xx(const struct ship *s)
{
	switch (s->child.children->state->options.config.retry_5xx) {
	case RETRY_5XX_SPOOL:
		return ship_has_file(s, INIT_SPOOL);
	case RETRY_5XX_YES:
		return true;
	case RETRY_5XX_NO:
		break;
	}
	return false;
}

static int start_ship(struct child *child)
{
	struct children *c = child->children;
	struct ship *s = (struct ship *)child;
	struct msg_dsn dsn = {
		.h = MSG_HEADER(MSG_DSN),
		.limited_until_ns = s->limit.until_ns,
		.denial = s->denial.status,
		.retry_5xx = retries_5xx(s),
		.no_reports = !c->state->options.config.client_reports,
		.compression = (uint32_t)c->state->options.config.compression,
		.kind = c->state->options.transaction != NULL ? ENVELOPE_V1 : ENVELOPE_CHUNK,
		.is_spotlight = s->is_spotlight,
	};
	struct msg_init init = {
		.nice_steps = c->state->nice_steps,
		.spool_dsn = s->spool_dsn,
		.spool_is_first = s->is_first,
		.spool_bytes = c->state->options.config.spool_max_bytes,
		.spool_count = c->state->options.config.spool_max_chunks,
		.spool_age_s = c->state->options.config.spool_max_age_s,
	};
	int fds[INIT_FILE_N], r;
	size_t n = 0;

	if (s->is_spotlight) {
		/* Spotlight answers zstd with status 500, and is not one of Sentry's servers. */
		dsn.compression = COMPRESSION_GZIP;
		dsn.retry_5xx = false;
		dsn.no_reports = true;
	}
	for (size_t i = 0; i < INIT_FILE_N; i++) {
		if (!ship_has_file(s, i))
			continue;
		fds[n++] = c->ship_fds[i];
		init.files |= 1u << i;
	}
	s->ping_checks = 0;
	r = start_process(child, fds, n, &init);
	if (r < 0)
		return r;
	if (s->dsn[0] != '\0') {
		memcpy(dsn.dsn, s->dsn, sizeof(dsn.dsn));
		child_send(&s->child, &dsn, sizeof(dsn), NULL, 0);
		explicit_bzero(&dsn, sizeof(dsn));
	}
	return 0;
}

const struct child_type child_types[CHILD_KIND_N] = {
	[CHILD_CAPTURE] = {CHILD_CAPTURE, "sentry-profd-capture", "capture", "nothing is sampled",
			   ACCOUNT_CAPTURE, no_environment, start_capture},
	[CHILD_UNWIND] = {CHILD_UNWIND, "sentry-profd-unwind", "unwind", "no chunk is made",
			  ACCOUNT_UNWIND, no_environment, start_unwind},
	[CHILD_SHIP] = {CHILD_SHIP, "sentry-profd-ship", "ship", "no chunk is delivered",
			ACCOUNT_SHIP, spawn_ship_environment, start_ship},
};

/* Returns a child of this kind that does not run. */
static struct child new_child(struct children *c, enum child_kind kind)
{
	return (struct child){.type = &child_types[kind], .children = c, .fd = -1};
}

void children_init(struct children *c)
{
	c->capture = new_child(c, CHILD_CAPTURE);
}

/* Two texts can name the same DSN. Two ships for it would share one part of the spool. */
static bool is_for(const struct ship *s, const char *dsn, uint64_t number)
{
	return !s->is_spotlight &&
	       (strcmp(s->dsn, dsn) == 0 || (number != 0 && s->spool_dsn == number));
}

bool children_ship_is_for(const struct ship *s, const char *dsn)
{
	return is_for(s, dsn, dsn_hash_of_text(dsn));
}

static int new_ship(struct children *c, const char *dsn, struct ship **ret)
{
	struct ship *s = calloc(1, sizeof(*s));
	struct dsn parsed;

	if (s == NULL)
		return -ENOMEM;
	s->child = new_child(c, CHILD_SHIP);
	/* Fits: a longer text is no DSN. */
	(void)snprintf(s->dsn, sizeof(s->dsn), "%s", dsn);
	if (dsn_parse(&parsed, dsn) == DSN_OK) {
		s->spool_dsn = dsn_hash(&parsed);
		dsn_label(&parsed, s->label);
	}
	explicit_bzero(&parsed, sizeof(parsed));
	s->is_first = c->n_ships == 0;
	c->ships[c->n_ships++] = s;
	*ret = s;
	return 0;
}

static int start_child(struct child *child)
{
	int r;

	/* Also if the start fails: reap_child_failed() counts failures in a row by this time. */
	child->started_ns = clock_mono_ns();
	child->restart_ns = 0;
	r = child->type->start(child);
	if (r == 0 && child->children->events.started != NULL)
		child->children->events.started(child->children->events.ctx, child);
	return r;
}

/* Starts the child. If that fails, plans a restart. */
static void start_or_retry(struct child *child)
{
	int r = start_child(child);

	if (r < 0 && resource_shortage_is(-r))
		child_note_shortage(child, "the start of", -r);
	if (r < 0 && child->pid == 0)
		reap_child_failed(child, "cannot be started");
}

int children_get_ship(struct children *c, const char *dsn, struct ship **ret)
{
	const uint64_t number = dsn_hash_of_text(dsn);
	bool any_leaves = false;
	int r;

	for (size_t i = 0; i < c->n_ships; i++) {
		struct ship *s = c->ships[i];

		any_leaves |= s->child.is_leaving;
		if (!is_for(s, dsn, number))
			continue;
		/* A second process would send the same files of the spool. */
		if (s->child.is_leaving)
			return -EAGAIN;
		*ret = s;
		return 0;
	}
	if (c->n_ships == array_size(c->ships))
		return any_leaves ? -EAGAIN : -ENOSPC;
	r = new_ship(c, dsn, ret);
	if (r == 0)
		start_or_retry(&(*ret)->child);
	return r;
}

static int start_spotlight(struct children *c)
{
	struct ship *s;
	int r = new_ship(c, c->spotlight_url, &s);

	if (r < 0)
		return r;
	s->is_spotlight = true;
	c->spotlight = s;
	return start_child(&s->child);
}

int children_start(struct children *c)
{
	struct ship *first;
	int r = new_ship(c, c->dsn, &first);

	/*
	 * No restarts here: a child that cannot be started now is an error of the daemon's
	 * start.
	 */
	if (r == 0)
		r = start_child(&first->child);
	if (r == 0 && c->spotlight_url[0] != '\0')
		r = start_spotlight(c);
	return r < 0 ? r : start_child(&c->capture);
}

/*
 * Returns the smallest id that no unwind process has. Capture replaces an earlier ring of this
 * id.
 */
static uint32_t free_id(const struct children *c)
{
	uint32_t id = 1;

	for (size_t i = 0; i < c->n_unwinds; i++)
		if (c->unwinds[i]->id == id) {
			id++;
			i = SIZE_MAX;
		}
	return id;
}

int children_get_unwind(struct children *c, const struct owner *owner, struct unwind **ret)
{
	const struct owner_key key = owner_key(owner);
	struct unwind *u;

	for (size_t i = 0; i < c->n_unwinds; i++)
		if (owner_key_equal(&c->unwinds[i]->key, &key) &&
		    !c->unwinds[i]->child.is_leaving) {
			*ret = c->unwinds[i];
			return 0;
		}
	/*
	 * There are as many places as targets: some of these processes have no target and end
	 * within a second.
	 */
	if (c->n_unwinds == array_size(c->unwinds))
		return -EAGAIN;
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	u->child = new_child(c, CHILD_UNWIND);
	u->id = free_id(c);
	u->key = key;
	u->link_fd = -1;
	c->unwinds[c->n_unwinds++] = u;
	/* The process has no targets yet, so its ring is made at once. */
	start_or_retry(&u->child);
	*ret = u;
	return 0;
}

static void check_restart(struct child *child)
{
	if (child->pid == 0 && child->restart_ns != 0 && clock_mono_ns() >= child->restart_ns)
		start_or_retry(child);
}

void children_check(struct children *c)
{
	struct child *child;

	children_check_killed(c);
	for (size_t i = 0; (child = child_at(c, i)) != NULL; i++) {
		child_check_slowed(child);
		if (child != &c->capture || state_is_sampling(c->state))
			check_restart(child);
	}
}

void children_add_usage(struct usage *sum, const struct usage *more)
{
	sum->cpu_s += more->cpu_s;
	sum->rss_bytes = max_u64(sum->rss_bytes, more->rss_bytes);
}

static void free_unwind(struct children *c, struct unwind *u)
{
	children_add_usage(&c->unwinds_gone, &u->child.usage);
	quarantine_page_free(&u->reading);
	close_fd(&u->link_fd);
	free(u);
}

static void free_ship(struct children *c, struct ship *s)
{
	children_add_usage(&c->ships_gone, &s->child.usage);
	ship_add_gone(c, s);
	server_limit_add_gone(c, s);
	explicit_bzero(s, sizeof(*s));
	free(s);
}

static bool has_left(const struct child *child)
{
	return child->is_leaving && child->pid == 0;
}

/*
 * The number of a ring may be given to another process only when capture has answered all requests
 * for the ring, because an answer names the ring by this number.
 */
static bool unwind_has_left(const struct children *c, const struct unwind *u)
{
	return has_left(&u->child) && (u->rings_awaited == 0 || c->capture.pid == 0);
}

void children_sweep(struct children *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_unwinds; i++)
		if (unwind_has_left(c, c->unwinds[i]))
			free_unwind(c, c->unwinds[i]);
		else
			c->unwinds[n++] = c->unwinds[i];
	c->n_unwinds = n;
	n = 0;
	for (size_t i = 0; i < c->n_ships; i++)
		if (has_left(&c->ships[i]->child) && c->ships[i]->n_in_flight == 0)
			free_ship(c, c->ships[i]);
		else
			c->ships[n++] = c->ships[i];
	c->n_ships = n;
}
