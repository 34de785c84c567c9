#include "daemon/broker/children/children.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/inbox.h"
#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/socket.h"
#include "daemon/broker/children/watch.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/delivery/limit.h"
#include "daemon/broker/delivery/past.h"
#include "daemon/broker/delivery/ship_files.h"
#include "daemon/broker/files/blame.h"
#include "daemon/broker/targets/usage.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/shortage.h"
#include "daemon/common/spawn.h"
#include "daemon/config/accounts.h"
#include "daemon/msg/page.h"
#include "lib/base/clock.h"
#include "proto/dsn.h"

static const char *const no_environment[] = {LOG_JOURNAL_VARIABLE, NULL};

static const struct msg_init no_files;

/* of_ship: what of MSG_INIT is for it alone. */
static int start(struct child *child, const int *init_fds, size_t n_init_fds,
		 const struct msg_init *of_ship)
{
	struct broker *b = child->broker;
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT),
		.uid = PRIVILEGES_KEEP_ID,
		.gid = PRIVILEGES_KEEP_ID,
		.debug = b->options.config.debug,
		.follows = b->options.children,
		.files = of_ship->files,
		.nice_steps = of_ship->nice_steps,
		.spool_dsn = of_ship->spool_dsn,
		.spool_is_first = of_ship->spool_is_first,
		.spool_bytes = of_ship->spool_bytes,
		.spool_count = of_ship->spool_count,
		.spool_age_s = of_ship->spool_age_s,
		.seccomp_kill = getenv("SENTRY_PROFD_SECCOMP_KILL") != NULL,
	};
	int r;

	if (b->privileged)
		account_ids(child->type->account, &init.uid, &init.gid);
	r = spawn_child(child->type->name, child->type->environment, &child->pid, &child->fd);
	if (r < 0) {
		if (child->failures == 0)
			log_error("%s cannot be started: %s", child->type->name, strerror(-r));
		return r;
	}
	child->state = CHILD_STARTS;
	child->owed_looks = 0;
	r = loop_add(b->loop, child->fd, child_on_readable, child, &child->source);
	if (r < 0) {
		child_fail(child, "cannot be listened to");
		return r;
	}
	child_send(child, &init, sizeof(init), init_fds, n_init_fds);
	return 0;
}

static int new_heartbeat(struct broker *b, int *ret_fd)
{
	const void *page;
	int r = page_new("heartbeat", sizeof(*b->heartbeat), &page, ret_fd);

	if (r < 0)
		return r;
	page_free(b->heartbeat, sizeof(*b->heartbeat));
	b->heartbeat = page;
	return 0;
}

static int start_unwind(struct child *child)
{
	struct unwind *u = (struct unwind *)child;
	int fd, r;

	/* The ring follows when the process knows all its targets. */
	u->ring_due = true;
	r = blame_begin(u, &fd);
	if (r < 0) {
		if (u->child.failures == 0)
			log_error("no memory to share with %s: %s", u->child.type->name,
				  strerror(-r));
		return r;
	}
	r = start(child, &fd, 1, &no_files);
	close_fd(&fd);
	return r;
}

int unwind_make_ring(struct broker *b, struct unwind *u)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_RING_MAKE), .id = u->id};
	int pair[2], r;

	close_fd(&u->link_fd);
	r = ipc_pair(pair);
	if (r < 0)
		return r;
	child_send(&b->capture, &m, sizeof(m), &pair[0], 1);
	close_fd(&pair[0]);
	u->link_fd = pair[1];
	u->rings_awaited++;
	return 0;
}

static int start_capture(struct child *child)
{
	struct broker *b = child->broker;
	int fd = -1, r;

	r = new_heartbeat(b, &fd);
	if (r < 0) {
		if (b->capture.failures == 0)
			log_error("no memory to share with %s: %s", b->capture.type->name,
				  strerror(-r));
		return r;
	}
	r = start(child, &fd, 1, &no_files);
	close_fd(&fd);
	for (size_t i = 0; i < b->n_unwinds; i++) {
		b->unwinds[i]->rings_awaited = 0;
		b->unwinds[i]->ring_due = true;
	}
	if (r == 0)
		FOR_EACH_TARGET (t, b)
			target_start(b, t);
	return r;
}

static int start_ship(struct child *child)
{
	struct broker *b = child->broker;
	struct ship *s = (struct ship *)child;
	struct msg_dsn dsn = {
		.h = MSG_HEADER(MSG_DSN),
		.limited_until_ns = s->limit.until_ns,
		.retry_5xx = b->options.config.retry_5xx,
		.no_reports = !b->options.config.client_reports,
		.compression = (uint32_t)b->options.config.compression,
		.kind = b->options.transaction != NULL ? ENVELOPE_V1 : ENVELOPE_CHUNK,
		.is_spotlight = s->is_spotlight,
	};
	struct msg_init init = {
		.nice_steps = b->nice_steps,
		.spool_dsn = s->spool_dsn,
		.spool_is_first = s->is_first,
		.spool_bytes = b->options.config.spool_max_bytes,
		.spool_count = b->options.config.spool_max_chunks,
		.spool_age_s = b->options.config.spool_max_age_s,
	};
	int fds[INIT_FILE_N], r;
	size_t n = 0;

	if (s->is_spotlight) {
		/* It answers zstd by 500, and is no server of Sentry's. */
		dsn.compression = COMPRESSION_GZIP;
		dsn.retry_5xx = false;
		dsn.no_reports = true;
	}
	for (size_t i = 0; i < INIT_FILE_N; i++) {
		if (!ship_files_has(s, i))
			continue;
		fds[n++] = b->ship_fds[i];
		init.files |= 1u << i;
	}
	r = start(child, fds, n, &init);
	if (r < 0)
		return r;
	if (s->dsn[0] != '\0') {
		memcpy(dsn.dsn, s->dsn, sizeof(dsn.dsn));
		child_send(&s->child, &dsn, sizeof(dsn), NULL, 0);
		explicit_bzero(&dsn, sizeof(dsn));
	}
	delivery_resend(b, s);
	return 0;
}

const struct child_type child_types[CHILD_KIND_N] = {
	[CHILD_CAPTURE] = {CHILD_CAPTURE, "sentry-profd-capture", "capture", "nothing is sampled",
			   ACCOUNT_CAPTURE, no_environment, start_capture, capture_on_message},
	[CHILD_UNWIND] = {CHILD_UNWIND, "sentry-profd-unwind", "unwind", "no chunk is made",
			  ACCOUNT_UNWIND, no_environment, start_unwind, unwind_on_message},
	[CHILD_SHIP] = {CHILD_SHIP, "sentry-profd-ship", "ship", "no chunk is delivered",
			ACCOUNT_SHIP, spawn_ship_environment, start_ship, ship_on_message},
};

/* A child of this kind that does not run yet. */
static struct child new_child(struct broker *b, enum child_kind kind)
{
	return (struct child){.type = &child_types[kind], .broker = b, .fd = -1};
}

struct child *child_at(struct broker *b, size_t i)
{
	if (i == 0)
		return &b->capture;
	i--;
	if (i < b->n_ships)
		return &b->ships[i]->child;
	i -= b->n_ships;
	return i < b->n_unwinds ? &b->unwinds[i]->child : NULL;
}

void children_init(struct broker *b)
{
	b->capture = new_child(b, CHILD_CAPTURE);
	if (getrandom(b->files_key, sizeof(b->files_key), 0) < 0)
		abort();
}

static uint64_t number_of(const char *text)
{
	uint64_t number = 0;
	struct dsn dsn;

	if (dsn_parse(&dsn, text) == DSN_OK)
		number = dsn_number(&dsn);
	explicit_bzero(&dsn, sizeof(dsn));
	return number;
}

/* Also by another text of it: two ships would have one part of the spool. */
static bool is_for(const struct ship *s, const char *dsn, uint64_t number)
{
	return !s->is_spotlight &&
	       (strcmp(s->dsn, dsn) == 0 || (number != 0 && s->spool_dsn == number));
}

bool ship_is_for(const struct ship *s, const char *dsn)
{
	return is_for(s, dsn, number_of(dsn));
}

static int new_ship(struct broker *b, const char *dsn, struct ship **ret)
{
	struct ship *s = calloc(1, sizeof(*s));
	struct dsn parsed;

	if (s == NULL)
		return -ENOMEM;
	s->child = new_child(b, CHILD_SHIP);
	/* It fits: nothing longer is a DSN. */
	(void)snprintf(s->dsn, sizeof(s->dsn), "%s", dsn);
	if (dsn_parse(&parsed, dsn) == DSN_OK) {
		s->spool_dsn = dsn_number(&parsed);
		dsn_label(&parsed, s->place);
	}
	explicit_bzero(&parsed, sizeof(parsed));
	s->is_first = b->n_ships == 0;
	b->ships[b->n_ships++] = s;
	*ret = s;
	return 0;
}

static int start_child(struct child *child)
{
	int r;

	/* Also of an attempt that fails: child_failed counts those in a row. */
	child->started_ns = clock_mono_ns();
	child->restart_ns = 0;
	r = child->type->start(child);
	if (r == 0)
		targets_check(child->broker);
	return r;
}

/* A child that cannot be started is tried again after a while. */
static void start_or_retry(struct child *child)
{
	int r = start_child(child);

	if (r < 0 && shortage_is(-r))
		shortage_note(-r, child->type->name);
	if (r < 0 && child->pid == 0)
		child_failed(child, "cannot be started");
}

int children_ship(struct broker *b, const char *dsn, struct ship **ret)
{
	const uint64_t number = number_of(dsn);
	bool any_leaves = false;
	int r;

	for (size_t i = 0; i < b->n_ships; i++) {
		struct ship *s = b->ships[i];

		any_leaves |= s->child.is_leaving;
		if (!is_for(s, dsn, number))
			continue;
		/* Two processes would send the same files of the spool. */
		if (s->child.is_leaving)
			return -EAGAIN;
		*ret = s;
		return 0;
	}
	if (b->n_ships == array_size(b->ships))
		return any_leaves ? -EAGAIN : -ENOSPC;
	r = new_ship(b, dsn, ret);
	if (r == 0)
		start_or_retry(&(*ret)->child);
	return r;
}

static int start_spotlight(struct broker *b)
{
	struct ship *s;
	int r = new_ship(b, b->spotlight.url, &s);

	if (r < 0)
		return r;
	s->is_spotlight = true;
	b->spotlight.ship = s;
	return start_child(&s->child);
}

int children_start(struct broker *b)
{
	struct ship *first;
	int r = new_ship(b, b->dsn, &first);

	/* What cannot be started now is an error of the start. */
	if (r == 0)
		r = start_child(&first->child);
	if (r == 0 && b->spotlight.url[0] != '\0')
		r = start_spotlight(b);
	return r < 0 ? r : start_child(&b->capture);
}

/* The least that none has: a ring of this number is made anew by capture. */
static uint32_t free_id(const struct broker *b)
{
	uint32_t id = 1;

	for (size_t i = 0; i < b->n_unwinds; i++)
		if (b->unwinds[i]->id == id) {
			id++;
			i = SIZE_MAX;
		}
	return id;
}

int children_unwind(struct broker *b, uint32_t uid, struct unwind **ret)
{
	struct unwind *u;

	for (size_t i = 0; i < b->n_unwinds; i++)
		if (b->unwinds[i]->uid == uid && !b->unwinds[i]->child.is_leaving) {
			*ret = b->unwinds[i];
			return 0;
		}
	/* There are no more targets: some serve none, and end in a minute. */
	if (b->n_unwinds == array_size(b->unwinds))
		return -EAGAIN;
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return -ENOMEM;
	u->child = new_child(b, CHILD_UNWIND);
	u->id = free_id(b);
	u->uid = uid;
	u->link_fd = -1;
	b->unwinds[b->n_unwinds++] = u;
	/* No target has it yet, so that its ring is made at once. */
	start_or_retry(&u->child);
	*ret = u;
	return 0;
}

static void check_restart(struct child *child)
{
	if (child->pid == 0 && child->restart_ns != 0 && clock_mono_ns() >= child->restart_ns)
		start_or_retry(child);
}

void children_check(struct broker *b)
{
	struct child *child;

	watch_heartbeat(b);
	children_check_killed(b);
	for (size_t i = 0; (child = child_at(b, i)) != NULL; i++)
		if (child != &b->capture || broker_samples(b))
			check_restart(child);
}

static void free_unwind(struct broker *b, struct unwind *u)
{
	usage_add(&b->unwinds_gone, &u->child.usage);
	blame_end(u);
	close_fd(&u->link_fd);
	free(u);
}

static void free_ship(struct broker *b, struct ship *s)
{
	usage_add(&b->ships_gone, &s->child.usage);
	past_ship_gone(b, s);
	limit_ship_gone(b, s);
	explicit_bzero(s, sizeof(*s));
	free(s);
}

static bool has_left(const struct child *child)
{
	return child->is_leaving && child->pid == 0;
}

void children_sweep(struct broker *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_unwinds; i++)
		if (has_left(&b->unwinds[i]->child))
			free_unwind(b, b->unwinds[i]);
		else
			b->unwinds[n++] = b->unwinds[i];
	b->n_unwinds = n;
	n = 0;
	for (size_t i = 0; i < b->n_ships; i++)
		if (has_left(&b->ships[i]->child) && !delivery_needs(b, b->ships[i]))
			free_ship(b, b->ships[i]);
		else
			b->ships[n++] = b->ships[i];
	b->n_ships = n;
}
