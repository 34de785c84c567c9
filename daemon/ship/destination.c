#include "daemon/ship/destination.h"

#include <stdio.h>

#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/clock.h"

#define SPOTLIGHT_PAUSE_MAX_NS (60 * NS_PER_SEC)

void destination_init(struct destination *d)
{
	*d = (struct destination){0};
	reports_init(&d->reports, clock_boot_ns());
}

void destination_set(struct destination *d, const struct dsn *dsn, uint64_t limited_until_ns)
{
	char place[DSN_LABEL_SIZE] = "";
	char about[sizeof("Spotlight at ") + DSN_LABEL_SIZE];

	d->has_dsn = dsn != NULL;
	if (dsn != NULL) {
		d->dsn = *dsn;
		dsn_label(dsn, place);
	}
	/* There may be several of us, of a server each. */
	(void)snprintf(about, sizeof(about), "%s%s", d->is_spotlight ? "Spotlight at " : "", place);
	log_about(about);
	/* Limits are the other place's, and so is its silence. */
	ratelimit_init(&d->limits);
	ratelimit_extend(&d->limits,
			 d->kind == ENVELOPE_V1 ? RATELIMIT_PROFILE : RATELIMIT_PROFILE_CHUNK,
			 limited_until_ns);
	backoff_succeeded(&d->backoff);
	d->clock_ahead_s = 0;
	d->clock_told = false;
}

static int64_t wall_s(void)
{
	return (int64_t)(clock_wall_ns() / NS_PER_SEC);
}

void destination_posts(struct destination *d)
{
	d->posted_s = wall_s();
}

/*
 * The answer was dated between the beginning of the request and now, whole
 * seconds rounded down: what is outside of that is between the clocks.
 */
static void compare_clocks(struct destination *d, int64_t date_s)
{
	const int64_t now_s = wall_s();
	int64_t ahead_s;
	bool differ;

	if (date_s == 0)
		return;
	ahead_s = date_s > now_s ? date_s - now_s : date_s < d->posted_s ? date_s - d->posted_s : 0;
	d->clock_ahead_s = ahead_s;
	differ = ahead_s > MSG_CLOCK_MAX_S || ahead_s < -MSG_CLOCK_MAX_S;
	if (differ == d->clock_told)
		return;
	d->clock_told = differ;
	if (differ)
		log_warning("the clock of this host is %lld s %s the server's: "
			    "profiles have its times, which the server does "
			    "not correct (set the clock)",
			    (long long)(ahead_s < 0 ? -ahead_s : ahead_s),
			    ahead_s < 0 ? "ahead of" : "behind");
	else
		log_warning("the clock of this host agrees with the server's "
			    "again");
}

static void take_headers(struct destination *d, const struct transport_answer *a)
{
	const struct ratelimit_answer answer = {
		.status = a->status,
		.limits = a->rate_limits,
		.retry_after = a->retry_after,
		.retry_date_s = a->retry_date_s,
	};

	if (a->sentry_error != NULL)
		log_debug("X-Sentry-Error: %s", a->sentry_error);
	ratelimit_update(&d->limits, &answer, clock_boot_ns(), wall_s());
	compare_clocks(d, a->date_s);
}

/* Said once, until it answers. */
static void no_answer(struct destination *d, const char *why)
{
	const uint64_t now_ns = clock_boot_ns();

	if (d->backoff.failures == 0)
		log_warning("the server does not answer: %s", why);
	if (d->is_spotlight)
		backoff_failed_alone(&d->backoff, now_ns, SPOTLIGHT_PAUSE_MAX_NS);
	else
		backoff_failed(&d->backoff, now_ns, random_number());
	log_debug("%s: the server is tried again in %.1f s", why,
		  (double)(d->backoff.until_ns - now_ns) / 1e9);
}

static void answered(struct destination *d)
{
	if (d->backoff.failures > 0)
		log_warning("the server answers again");
	backoff_succeeded(&d->backoff);
}

enum verdict destination_take(struct destination *d, const struct transport_answer *a)
{
	enum verdict verdict = verdict_of(a->status, d->retry_5xx);

	if (d->is_spotlight && verdict == VERDICT_LIMITED)
		verdict = VERDICT_REFUSED;
	if (a->status != 0 && !d->is_spotlight)
		take_headers(d, a);
	if (verdict == VERDICT_NONE)
		no_answer(d, a->status == 0 ? a->error : "it says that it cannot");
	else
		answered(d);
	/* After a 429 it may have been taken: told twice would be worse. */
	if (verdict == VERDICT_TAKEN || verdict == VERDICT_LIMITED)
		reports_arrived(&d->reports);
	else
		reports_failed(&d->reports);
	return verdict;
}

const struct reports_item *destination_report(struct destination *d, uint64_t due_ns)
{
	const uint64_t now_ns = clock_boot_ns();

	if (d->is_silent || due_ns > now_ns ||
	    reports_take(&d->reports, now_ns, wall_s(), &d->item) < 0)
		return NULL;
	return &d->item;
}

uint64_t destination_limit_ns(const struct destination *d, enum envelope_kind kind)
{
	static const enum ratelimit_category of_v1[] = {
		RATELIMIT_TRANSACTION,
		RATELIMIT_SPAN,
		RATELIMIT_PROFILE,
	};
	uint64_t until_ns = 0;

	if (kind == ENVELOPE_CHUNK)
		return ratelimit_until(&d->limits, RATELIMIT_PROFILE_CHUNK);
	for (size_t i = 0; i < array_size(of_v1); i++)
		until_ns = max_u64(until_ns, ratelimit_until(&d->limits, of_v1[i]));
	return until_ns;
}
