#include "daemon/ship/destination.h"

#include <stdio.h>
#include <string.h>

#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/msg/msg_ship.h"
#include "lib/base/clock.h"
#include "proto/answer.h"

#define SPOTLIGHT_PAUSE_MAX_NS (60 * NS_PER_SEC)

void destination_init(struct destination *d)
{
	*d = (struct destination){0};
	reports_init(&d->reports, clock_boot_ns());
}

void destination_set_dsn(struct destination *d, const struct dsn *dsn, uint64_t limited_until_ns,
			 int denial)
{
	char server[DSN_LABEL_SIZE] = "";
	char about[sizeof("Spotlight at ") + DSN_LABEL_SIZE];

	d->has_dsn = dsn != NULL;
	if (dsn != NULL) {
		d->dsn = *dsn;
		dsn_label(dsn, server);
	}
	/* There is a ship for each server. */
	(void)snprintf(about, sizeof(about), "%s%s", d->is_spotlight ? "Spotlight at " : "",
		       server);
	log_set_subject(about);
	rate_limit_init(&d->limits);
	rate_limit_extend(&d->limits,
			  d->kind == ENVELOPE_V1 ? RATE_LIMIT_PROFILE : RATE_LIMIT_PROFILE_CHUNK,
			  limited_until_ns);
	retry_succeeded(&d->retry);
	d->silence[0] = '\0';
	d->denial = denial;
	d->denial_text[0] = '\0';
	d->on_trial = false;
	d->clock_ahead_s = 0;
}

static int64_t wall_s(void)
{
	return (int64_t)(clock_wall_ns() / NS_PER_SEC);
}

void destination_note_request(struct destination *d)
{
	d->request_start_s = wall_s();
}

/*
 * date_s: the server's time, in whole seconds rounded down, at which it answered: some moment
 * between the start of the request and now. A date outside of that span is the clocks' difference.
 */
static void compare_clocks(struct destination *d, int64_t date_s)
{
	const int64_t now_s = wall_s();
	int64_t server_ahead_s = 0;

	if (date_s == 0)
		return;
	if (date_s > now_s)
		server_ahead_s = date_s - now_s;
	else if (date_s < d->request_start_s)
		server_ahead_s = date_s - d->request_start_s;
	d->clock_ahead_s = server_ahead_s;
}

static void handle_headers(struct destination *d, const struct transport_answer *a)
{
	const struct rate_limit_answer answer = {
		.status = a->status,
		.limits = a->rate_limits,
		.retry_after = a->retry_after,
		.retry_date_s = a->retry_date_s,
	};

	if (a->sentry_error != NULL)
		log_debug("the server answers with X-Sentry-Error: %s", a->sentry_error);
	/* A date in Retry-After is one of the server's clock. */
	rate_limit_update(&d->limits, &answer, clock_boot_ns(),
			  a->date_s != 0 ? a->date_s : wall_s());
	compare_clocks(d, a->date_s);
}

/* Compares two texts of libcurl without their digits: a time or a port is no other reason. */
static bool is_same_reason(const char *a, const char *b)
{
	static const char digits[] = "0123456789";

	for (;; a++, b++) {
		a += strspn(a, digits);
		b += strspn(b, digits);
		if (*a != *b)
			return false;
		if (*a == '\0')
			return true;
	}
}

/* Logs the reason if the server answered before, or was silent for another reason. */
static void log_silence(struct destination *d, int status, const char *why)
{
	char reason[DESTINATION_REASON_MAX];

	(void)snprintf(reason, sizeof(reason), "%s", why);
	if (d->silence[0] != '\0' && d->silence_status == status &&
	    is_same_reason(d->silence, reason))
		return;
	memcpy(d->silence, reason, sizeof(reason));
	d->silence_status = status;
	log_warning("the server does not answer: %s%s", reason,
		    d->is_spotlight ? ""
				    : "; chunks wait in the spool, or in memory until the end");
}

/* Chooses the time of the next try; logs a new reason. */
static void handle_no_answer(struct destination *d, const struct transport_answer *a)
{
	const uint64_t now_ns = clock_boot_ns();
	char status[sizeof("HTTP status 503")];
	const char *why = a->error;

	if (a->status != 0) {
		(void)snprintf(status, sizeof(status), "HTTP status %d", a->status);
		why = status;
	}
	log_silence(d, a->status, why);
	if (d->is_spotlight)
		retry_failed_without_jitter(&d->retry, now_ns, SPOTLIGHT_PAUSE_MAX_NS);
	else
		retry_failed(&d->retry, now_ns, RETRY_MAX_NS, random_number());
	log_debug("%s: the server is tried again in %.1f s", why,
		  (double)(d->retry.until_ns - now_ns) / 1e9);
}

static void end_silence(struct destination *d)
{
	if (d->silence[0] != '\0')
		log_warning("the server answers again");
	d->silence[0] = '\0';
}

static enum outcome handle_denial(struct destination *d, const struct transport_answer *a,
				  bool is_extra)
{
	const bool is_refused = d->on_trial && !is_extra;
	char detail[TRANSPORT_BODY_MAX];

	d->denial = a->status;
	d->on_trial = false;
	answer_detail(a->body, a->body_size, detail, sizeof(detail));
	dsn_hide_keys(&d->dsn, detail);
	(void)snprintf(d->denial_text, sizeof(d->denial_text), "%.*s",
		       (int)sizeof(d->denial_text) - 1, detail);
	retry_failed(&d->retry, clock_boot_ns(), RETRY_DENIED_MAX_NS, random_number());
	return is_refused ? OUTCOME_REFUSED : OUTCOME_DENIED;
}

static void handle_success(struct destination *d, bool is_extra)
{
	d->on_trial = is_extra && (d->on_trial || d->denial != 0);
	d->denial = 0;
	/* The failures count until the server has answered an envelope. */
	if (d->on_trial)
		d->retry.until_ns = 0;
	else
		retry_succeeded(&d->retry);
}

/*
 * 407 and 511 are the statuses of a proxy that requires a password, and of a network that requires
 * a login: the server has not seen the request. Over HTTPS libcurl gets no status then. 502, 503
 * and 504 are the statuses of a proxy whose server is down, and of a server that is overloaded.
 */
static enum outcome outcome_of(int status, bool retry_5xx)
{
	if (status == 0 || status == 407 || status == 511 ||
	    (retry_5xx && status >= 502 && status <= 504))
		return OUTCOME_NO_ANSWER;
	if (status == 429)
		return OUTCOME_RATE_LIMITED;
	if (status == 401 || status == 403)
		return OUTCOME_DENIED;
	return status < 300 ? OUTCOME_ACCEPTED : OUTCOME_REFUSED;
}

enum outcome destination_handle_answer(struct destination *d, const struct transport_answer *a,
				       bool is_extra)
{
	enum outcome outcome = outcome_of(a->status, d->retry_5xx);

	if (d->is_spotlight && (outcome == OUTCOME_RATE_LIMITED || outcome == OUTCOME_DENIED))
		outcome = OUTCOME_REFUSED;
	if (a->status != 0 && !d->is_spotlight)
		handle_headers(d, a);
	if (outcome == OUTCOME_NO_ANSWER)
		handle_no_answer(d, a);
	else
		end_silence(d);
	if (outcome == OUTCOME_DENIED)
		outcome = handle_denial(d, a, is_extra);
	else if (outcome != OUTCOME_NO_ANSWER)
		handle_success(d, is_extra);
	/* After a 429 the server may have the report: counting twice would be worse. */
	if (outcome == OUTCOME_ACCEPTED || outcome == OUTCOME_RATE_LIMITED)
		reports_arrived(&d->reports);
	else
		reports_failed(&d->reports);
	return outcome;
}

const struct reports_item *destination_report(struct destination *d, uint64_t due_ns)
{
	const uint64_t now_ns = clock_boot_ns();

	if (d->no_reports || due_ns > now_ns ||
	    reports_take(&d->reports, now_ns, wall_s(), &d->item) < 0)
		return NULL;
	return &d->item;
}

uint64_t destination_limit_ns(const struct destination *d, enum envelope_kind kind)
{
	static const enum rate_limit_category of_v1[] = {
		RATE_LIMIT_TRANSACTION,
		RATE_LIMIT_SPAN,
		RATE_LIMIT_PROFILE,
	};
	uint64_t until_ns = 0;

	if (kind == ENVELOPE_CHUNK)
		return rate_limit_until(&d->limits, RATE_LIMIT_PROFILE_CHUNK);
	for (size_t i = 0; i < array_size(of_v1); i++)
		until_ns = max_u64(until_ns, rate_limit_until(&d->limits, of_v1[i]));
	return until_ns;
}
