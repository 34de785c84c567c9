#include "daemon/ship/spooler.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/common/spool_dir.h"
#include "lib/base/clock.h"
#include "lib/ship/package.h"
#include "lib/ship/retry.h"

/* Waits after an error: until a full disk may have room, and until memory may be free. */
#define DISK_PAUSE_NS (10 * NS_PER_SEC)
#define GET_PAUSE_NS  (1 * NS_PER_SEC)

/* Time between two searches for envelopes that are too old. */
#define CHECK_PAUSE_NS (60 * NS_PER_SEC)

static uint64_t wall_ms(void)
{
	return clock_wall_ns() / NS_PER_MS;
}

void spooler_init(struct spooler *s, struct reports *reports)
{
	*s = (struct spooler){.reports = reports};
}

void spooler_fini(struct spooler *s)
{
	spool_free(s->spool);
	s->spool = NULL;
}

static void update_counts(struct spooler *s)
{
	s->counts.count = spool_count(s->spool);
	s->counts.bytes = spool_bytes(s->spool);
	s->changed = true;
}

/* Counts a removed envelope for the client report. name: of its file. */
static void count_lost(struct spooler *s, const char *name)
{
	struct spool_entry e;

	if (spool_name_parse(name, &e) == 0 && e.dsn == s->dsn)
		reports_count(s->reports, e.kind, CLIENT_REPORT_CACHE_OVERFLOW, 1);
}

static void on_event(void *ctx, enum spool_event event, const char *name, int error)
{
	struct spooler *s = ctx;

	s->changed = true;
	switch (event) {
	case SPOOL_OVERFLOW:
		s->counts.overflow++;
		count_lost(s, name);
		if (!s->warned_overflow)
			log_warning("the spool is full (spool_max_bytes, spool_max_chunks), since "
				    "its server "
				    "does not take the chunks: the oldest are removed");
		s->warned_overflow = true;
		return;
	case SPOOL_EXPIRED:
		s->counts.expired++;
		count_lost(s, name);
		log_debug("%s in the spool is removed, because it is too old", name);
		return;
	case SPOOL_SET_ASIDE:
		s->counts.set_aside++;
		log_warning("%s in the spool is damaged or foreign (%s): it is set aside as "
			    "%s.bad, and not sent",
			    name, strerror(error), name);
		return;
	case SPOOL_IGNORED:
		log_warning("%s in the spool is ignored: it does not belong there, and cannot be "
			    "renamed: %s",
			    name, strerror(error));
		return;
	}
}

int spooler_open(struct spooler *s, uint64_t dsn, const struct spool_limits *limits, int dir_fd)
{
	const struct spool_options options = {
		.dir_fd = dir_fd,
		.dsn = dsn,
		.limits =
			{
				.bytes = limits->bytes != 0 ? limits->bytes : SPOOL_BYTES_DEFAULT,
				.count = limits->count != 0 ? limits->count : SPOOL_COUNT_DEFAULT,
				.age_ms = limits->age_ms != 0 ? limits->age_ms
							      : SPOOL_AGE_DEFAULT_S * 1000,
			},
		.event = on_event,
		.ctx = s,
	};
	int r;

	s->dsn = dsn;
	r = spool_new(&s->spool, &options, wall_ms());
	if (r < 0)
		return r;
	update_counts(s);
	s->next_ns = clock_boot_ns() + random_below(SPOOLER_START_MAX_NS);
	if (s->counts.count > 0)
		log_debug("%llu chunks wait in the spool", (unsigned long long)s->counts.count);
	return 0;
}

void spooler_set_dsn(struct spooler *s, const struct dsn *dsn)
{
	uint64_t ignored;
	size_t others;

	s->dsn = dsn_hash(dsn);
	if (s->spool == NULL)
		return;
	others = spool_count(s->spool) - spool_span(s->spool, s->dsn, &ignored);
	if (others > 0)
		log_warning("%zu chunk%s in the spool for another DSN, until that DSN is "
			    "configured again or the chunk is too old",
			    others, others == 1 ? " waits" : "s wait");
}

static void set_disk_error(struct spooler *s, int error)
{
	s->changed |= error != s->disk_error;
	s->disk_error = error;
	s->disk_retry_ns = error == 0 ? 0 : clock_boot_ns() + DISK_PAUSE_NS;
}

void spooler_check(struct spooler *s)
{
	const uint64_t now_ns = clock_boot_ns();

	if (s->spool == NULL)
		return;
	if (s->disk_error != 0 && now_ns >= s->disk_retry_ns)
		set_disk_error(s, -spool_try(s->spool, s->disk_size));
	if (now_ns < s->check_ns)
		return;
	s->check_ns = now_ns + CHECK_PAUSE_NS;
	spool_expire(s->spool, wall_ms());
	spool_forget_moved(s->spool);
	if (s->counts.count != spool_count(s->spool))
		update_counts(s);
}

bool spooler_has(const struct spooler *s, const char *chunk_id)
{
	uint8_t id[SPOOL_ID_BYTES];

	return s->spool != NULL && spool_id_parse(chunk_id, id) == 0 &&
	       spool_find(s->spool, id) != NULL;
}

static int put(struct spooler *s, const struct queue_item *item)
{
	uint8_t id[SPOOL_ID_BYTES];
	struct buf body;
	int r;

	buf_init(&body, QUEUE_BODY_MAX);
	r = spool_id_parse(item->chunk_id, id);
	if (r == 0)
		r = package_compress(&item->package, ENVELOPE_NOT_SENT, NULL, &body);
	if (r == 0)
		r = spool_add(s->spool, id, s->dsn, package_kind(&item->package), body.data,
			      body.len, wall_ms());
	if (r != -E2BIG)
		s->disk_size = body.len;
	buf_fini(&body);
	return r;
}

bool spooler_put(struct spooler *s, struct queue_item *item)
{
	int r;

	/* Not an error of the disk: an unwind that was taken over can use an id twice. */
	if (spooler_has(s, item->chunk_id))
		return true;
	if (s->spool == NULL || item->is_too_large || clock_boot_ns() < s->disk_retry_ns)
		return false;
	r = put(s, item);
	item->is_too_large = r == -E2BIG;
	if (item->is_too_large) {
		log_warning("chunk %s does not fit even into an empty spool: raise spool_max_bytes",
			    item->chunk_id);
		return false;
	}
	set_disk_error(s, -r);
	if (r < 0)
		return false;
	update_counts(s);
	log_debug("chunk %s is put into the spool", item->chunk_id);
	return true;
}

void spooler_retry_disk(struct spooler *s)
{
	s->disk_retry_ns = 0;
}

uint64_t spooler_due_ns(const struct spooler *s, enum envelope_kind kind)
{
	const struct spool_entry *e =
		s->spool == NULL ? NULL : spool_oldest(s->spool, s->dsn, kind);

	if (e == NULL)
		return UINT64_MAX;
	/*
	 * The oldest one at the end of an outage can be held back once. One that the server never
	 * answers would fill a slow connection.
	 */
	return e->held_back > 1 ? max_u64(s->next_ns, s->held_ns) : s->next_ns;
}

static int stamp(const struct spooler *s, const struct spool_entry *e, enum compression compression,
		 const struct reports_item *report, struct buf *ret)
{
	int fd = -1, r;

	r = spool_open(s->spool, e, &fd);
	if (r == 0)
		r = package_stamp(fd, compression, (int64_t)(clock_wall_ns() / NS_PER_US), report,
				  ret);
	close_fd(&fd);
	return r;
}

/* After so many requests in a row without an answer another envelope is sent every second time. */
#define TRIES 3

static const struct spool_entry *choose(struct spooler *s, enum envelope_kind kind)
{
	const struct spool_entry *oldest = spool_oldest(s->spool, s->dsn, kind);
	const struct spool_entry *other;

	s->overtakes = false;
	if (oldest == NULL || s->failures < TRIES || (s->failures - TRIES) % 2 != 0)
		return oldest;
	/* A random one: the next ones may be as large as the oldest. */
	other = spool_other(s->spool, oldest, random_number());
	if (other == NULL)
		return oldest;
	s->overtakes = true;
	memcpy(s->overtaken_id, oldest->id, sizeof(s->overtaken_id));
	return other;
}

bool spooler_get(struct spooler *s, enum envelope_kind kind, enum compression compression,
		 const struct reports_item *report, struct buf *ret)
{
	const struct spool_entry *e;
	int r;

	spool_expire(s->spool, wall_ms());
	while ((e = choose(s, kind)) != NULL) {
		r = stamp(s, e, compression, report, ret);
		if (r == 0) {
			s->sending = true;
			s->sending_kind = kind;
			memcpy(s->sending_id, e->id, sizeof(s->sending_id));
			return true;
		}
		buf_fini(ret);
		/* The process is short of something; the file is good. */
		if (r == -ENOMEM || r == -EMFILE || r == -ENFILE) {
			s->next_ns = clock_boot_ns() + GET_PAUSE_NS;
			return false;
		}
		spool_set_aside(s->spool, e, -r);
		reports_count(s->reports, kind, CLIENT_REPORT_INTERNAL_SDK_ERROR, 1);
		update_counts(s);
	}
	return false;
}

/* Returns the time one pause from now. */
static uint64_t after_pause_ns(const struct spooler *s)
{
	uint64_t span_ms;
	const size_t n = spool_span(s->spool, s->dsn, &span_ms);

	return clock_boot_ns() + retry_pause_ns(n, span_ms * NS_PER_MS, random_number());
}

void spooler_handle_outcome(struct spooler *s, enum outcome outcome)
{
	const struct spool_entry *e = spool_find(s->spool, s->sending_id);

	s->sending = false;
	s->next_ns = after_pause_ns(s);
	switch (outcome) {
	case OUTCOME_NO_ANSWER:
		s->failures++;
		if (e != NULL && e->held_back > 0) {
			spool_hold_back(s->spool, s->sending_id);
			s->held_ns = clock_boot_ns() + RETRY_MAX_NS;
		}
		return;
	case OUTCOME_DENIED:
		return;
	case OUTCOME_ACCEPTED:
		s->counts.sent++;
		break;
	case OUTCOME_RATE_LIMITED:
		s->counts.rate_limited++;
		break;
	case OUTCOME_REFUSED:
		s->counts.refused++;
		reports_count(s->reports, s->sending_kind, CLIENT_REPORT_SEND_ERROR, 1);
		break;
	}
	s->failures = 0;
	if (s->overtakes)
		spool_hold_back(s->spool, s->overtaken_id);
	/* A newer envelope may have taken its place during the request. */
	if (e != NULL)
		spool_remove(s->spool, e);
	update_counts(s);
}

void spooler_server_answers(struct spooler *s)
{
	s->warned_overflow = false;
	if (s->spool != NULL)
		s->next_ns = min_u64(s->next_ns, after_pause_ns(s));
}
