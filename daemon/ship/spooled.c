#include "daemon/ship/spooled.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/common/spool_dir.h"
#include "daemon/ship/outbox.h"
#include "lib/base/clock.h"
#include "lib/ship/pace.h"

/* A full disk may have room again, and memory may be free again. */
#define KEEP_PAUSE_NS (10 * NS_PER_SEC)
#define GIVE_PAUSE_NS (1 * NS_PER_SEC)

/* Who is asked nothing looks for what is too old in its own time. */
#define CHECK_PAUSE_NS (60 * NS_PER_SEC)

static uint64_t wall_ms(void)
{
	return clock_wall_ns() / NS_PER_MS;
}

void spooled_init(struct spooled *s, struct reports *reports)
{
	*s = (struct spooled){.reports = reports};
}

void spooled_fini(struct spooled *s)
{
	spool_free(s->spool);
	s->spool = NULL;
}

static void count(struct spooled *s)
{
	s->counts.count = spool_count(s->spool);
	s->counts.bytes = spool_bytes(s->spool);
	s->counts_changed = true;
}

/* One that was dropped, by its name. */
static void count_lost(struct spooled *s, const char *name)
{
	struct spool_entry e;

	if (spool_name_parse(name, &e) == 0 && e.dsn == s->dsn)
		reports_count(s->reports, e.kind, CLIENT_REPORT_CACHE_OVERFLOW, 1);
}

static void on_event(void *ctx, enum spool_event event, const char *name, int error)
{
	struct spooled *s = ctx;

	s->counts_changed = true;
	switch (event) {
	case SPOOL_OVERFLOW:
		s->counts.overflow++;
		count_lost(s, name);
		if (!s->overflow_told)
			log_warning("the spool is full: the oldest chunks are "
				    "removed");
		s->overflow_told = true;
		return;
	case SPOOL_EXPIRED:
		s->counts.expired++;
		count_lost(s, name);
		log_debug("spool: %s is too old", name);
		return;
	case SPOOL_SET_ASIDE:
		s->counts.set_aside++;
		log_warning("spool: %s is set aside: %s", name, strerror(error));
		return;
	case SPOOL_LEFT_ALONE:
		log_warning("spool: %s is not of ours", name);
		return;
	}
}

int spooled_open(struct spooled *s, uint64_t dsn, const struct spool_limits *limits, int dir_fd)
{
	const struct spool_options options = {
		.dir_fd = dir_fd,
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
	count(s);
	s->next_ns = clock_boot_ns() + random_below(SPOOLED_START_MAX_NS);
	if (s->counts.count > 0)
		log_debug("%llu chunks wait in the spool", (unsigned long long)s->counts.count);
	return 0;
}

void spooled_set_dsn(struct spooled *s, const struct dsn *dsn)
{
	uint64_t ignored;
	size_t others;

	s->dsn = dsn_number(dsn);
	if (s->spool == NULL)
		return;
	others = spool_count(s->spool) - spool_span(s->spool, s->dsn, &ignored);
	if (others > 0)
		log_warning("%zu chunk%s in the spool for another DSN, to be "
			    "sent when that is configured again, or removed "
			    "when too old",
			    others, others == 1 ? " waits" : "s wait");
}

void spooled_check(struct spooled *s)
{
	const uint64_t now_ns = clock_boot_ns();

	if (s->spool == NULL || now_ns < s->check_ns)
		return;
	s->check_ns = now_ns + CHECK_PAUSE_NS;
	spool_expire(s->spool, wall_ms());
	spool_forget_taken(s->spool, s->dsn);
	if (s->counts.count != spool_count(s->spool))
		count(s);
}

bool spooled_has(const struct spooled *s, const char *chunk_id)
{
	uint8_t id[SPOOL_ID_BYTES];

	return s->spool != NULL && spool_id_parse(chunk_id, id) == 0 &&
	       spool_find(s->spool, id) != NULL;
}

static int put(struct spooled *s, const struct package *p, const char *chunk_id)
{
	uint8_t id[SPOOL_ID_BYTES];
	struct buf kept;
	int r;

	buf_init(&kept, OUTBOX_BODY_MAX);
	r = spool_id_parse(chunk_id, id);
	if (r == 0)
		r = package_compress(p, ENVELOPE_NOT_SENT, NULL, &kept);
	if (r == 0)
		r = spool_add(s->spool, id, s->dsn, package_kind(p), kept.data, kept.len,
			      wall_ms());
	buf_fini(&kept);
	return r;
}

bool spooled_keep(struct spooled *s, const struct package *p, const char *chunk_id)
{
	int r;

	if (s->spool == NULL || clock_boot_ns() < s->keep_ns)
		return false;
	r = put(s, p, chunk_id);
	if (r < 0) {
		if (s->keep_ns == 0)
			log_warning("chunks cannot be put into the spool: %s: "
				    "they stay in memory",
				    strerror(-r));
		s->keep_ns = clock_boot_ns() + KEEP_PAUSE_NS;
		return false;
	}
	s->keep_ns = 0;
	count(s);
	log_debug("chunk %s is put into the spool", chunk_id);
	return true;
}

void spooled_ask_again(struct spooled *s)
{
	s->keep_ns = min_u64(s->keep_ns, 1);
}

uint64_t spooled_due_ns(const struct spooled *s, enum envelope_kind kind)
{
	if (s->spool == NULL || spool_oldest(s->spool, s->dsn, kind) == NULL)
		return UINT64_MAX;
	return s->next_ns;
}

static int stamp(const struct spooled *s, const struct spool_entry *e, enum compression compression,
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

bool spooled_give(struct spooled *s, enum envelope_kind kind, enum compression compression,
		  const struct reports_item *report, struct buf *ret)
{
	const struct spool_entry *e;
	int r;

	spool_expire(s->spool, wall_ms());
	while ((e = spool_oldest(s->spool, s->dsn, kind)) != NULL) {
		r = stamp(s, e, compression, report, ret);
		if (r == 0) {
			s->given = true;
			s->given_kind = kind;
			memcpy(s->given_id, e->id, sizeof(s->given_id));
			return true;
		}
		buf_fini(ret);
		/* Ours, not the file's. */
		if (r == -ENOMEM || r == -EMFILE || r == -ENFILE) {
			s->next_ns = clock_boot_ns() + GIVE_PAUSE_NS;
			return false;
		}
		spool_set_aside(s->spool, e, -r);
		reports_count(s->reports, kind, CLIENT_REPORT_INTERNAL_SDK_ERROR, 1);
		count(s);
	}
	return false;
}

/* When the next may follow now. */
static uint64_t after_a_pause_ns(const struct spooled *s)
{
	uint64_t span_ms;
	const size_t n = spool_span(s->spool, s->dsn, &span_ms);

	return clock_boot_ns() + pace_pause_ns(n, span_ms * NS_PER_MS, random_number());
}

void spooled_answered(struct spooled *s, enum verdict verdict)
{
	const struct spool_entry *e = spool_find(s->spool, s->given_id);

	s->given = false;
	s->next_ns = after_a_pause_ns(s);
	switch (verdict) {
	case VERDICT_NONE:
		return;
	case VERDICT_TAKEN:
		s->counts.sent++;
		break;
	case VERDICT_LIMITED:
		s->counts.rate_limited++;
		break;
	case VERDICT_REFUSED:
		s->counts.refused++;
		reports_count(s->reports, s->given_kind, CLIENT_REPORT_SEND_ERROR, 1);
		break;
	}
	/* Its place may have been taken meanwhile. */
	if (e != NULL)
		spool_remove(s->spool, e);
	count(s);
}

void spooled_hurry(struct spooled *s)
{
	s->overflow_told = false;
	if (s->spool != NULL)
		s->next_ns = min_u64(s->next_ns, after_a_pause_ns(s));
}
