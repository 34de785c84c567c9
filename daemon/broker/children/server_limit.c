#include "daemon/broker/children/server_limit.h"

#include <string.h>

#include "daemon/common/log.h"
#include "lib/base/clock.h"
#include "lib/base/token_bucket.h"
#include "proto/rate_limit.h"

/* ship shortens limits to this; a longer one is an error of ship. */
#define LIMIT_MAX_NS (RATE_LIMIT_MAX_S * NS_PER_SEC)

/*
 * The rate limit of holds: HOLDS_MAX holds in a row, and one more every HOLD_EACH_NS. A hold
 * beyond this rate lasts until the rate allows it. Reason: a hold detaches from all targets of the
 * DSN, which costs time in the daemon's processes and the targets, and a ship that was taken over
 * could cause many holds.
 */
#define HOLDS_MAX    6
#define HOLD_EACH_NS (10 * NS_PER_SEC)

/* Returns true if chunks of the ship go to its server only. */
static bool goes_to_server_only(const struct ship *s, bool has_files)
{
	return s->dsn[0] != '\0' && !has_files;
}

int server_limit_set(struct ship *s, uint64_t until_ns, bool has_files)
{
	const uint64_t now_ns = clock_boot_ns();

	if (until_ns > now_ns + LIMIT_MAX_NS)
		return -EPROTO;
	s->limit.until_ns = until_ns;
	if (until_ns > now_ns)
		log_warning("%s: the server takes no profiles for %llu s (a rate limit, or the "
			    "quota is used up): %s",
			    s->label,
			    (unsigned long long)((until_ns - now_ns - 1) / NS_PER_SEC) + 1,
			    goes_to_server_only(s, has_files) ? "nothing is sampled"
							      : "profiles are not sent");
	return 0;
}

int server_limit_deny(struct ship *s, const struct msg_denied *m, bool has_files)
{
	if (memchr(m->text, '\0', sizeof(m->text)) == NULL || m->status > INT32_MAX)
		return -EPROTO;
	if (m->status == s->denial.status && strcmp(m->text, s->denial.text) == 0)
		return 0;
	s->denial = *m;
	if (m->status == 0)
		log_warning("%s: the server accepts the DSN again", s->label);
	else
		log_warning("%s: the server refuses the DSN with status %u%s%s: %s; the server is "
			    "tried again at growing intervals, at most an hour, and at each "
			    "reload; " LIMIT_DENIAL_ADVICE,
			    s->label, m->status, m->text[0] != '\0' ? ", " : "", m->text,
			    goes_to_server_only(s, has_files)
				    ? "nothing is sampled, and the chunks wait"
				    : "the chunks wait");
	return 0;
}

static void begin_hold(const struct ship *s, struct server_limit *l, uint64_t now_ns)
{
	l->stops_sampling = true;
	l->since_ns = now_ns;
	l->holds++;
	token_bucket_take(&l->full_ns, now_ns, HOLD_EACH_NS);
	log_debug("%s: detaching from processes, because the server takes no profiles", s->label);
}

static void end_hold(const struct ship *s, struct server_limit *l, uint64_t now_ns)
{
	l->stops_sampling = false;
	l->held_ns += now_ns - l->since_ns;
	log_debug("%s: the server takes profiles again", s->label);
}

void server_limit_check(struct children *c, bool has_files)
{
	const uint64_t boot_ns = clock_boot_ns(), now_ns = state_now_ns(c->state);

	if (!state_is_sampling(c->state))
		return;
	for (size_t i = 0; i < c->n_ships; i++) {
		struct server_limit *l = &c->ships[i]->limit;
		const bool limited = goes_to_server_only(c->ships[i], has_files) &&
				     (boot_ns < l->until_ns || c->ships[i]->denial.status != 0);

		if (limited && !l->stops_sampling)
			begin_hold(c->ships[i], l, now_ns);
		else if (!limited && l->stops_sampling &&
			 token_bucket_holds(l->full_ns, HOLDS_MAX * HOLD_EACH_NS, now_ns, 0))
			end_hold(c->ships[i], l, now_ns);
	}
}

bool server_limit_stops_sampling(const struct ship *s)
{
	return s != NULL && s->limit.stops_sampling;
}

static void add_limit(struct server_limit_sum *sum, const struct server_limit *l, uint64_t now_ns)
{
	sum->holds += l->holds;
	sum->held_ns += l->held_ns;
	if (!l->stops_sampling)
		return;
	sum->held_ns += now_ns - l->since_ns;
	sum->until_ns = max_u64(sum->until_ns, l->until_ns);
	sum->is_held = true;
}

void server_limit_add_gone(struct children *c, const struct ship *s)
{
	struct server_limit_sum sum = {0};

	add_limit(&sum, &s->limit, state_now_ns(c->state));
	c->limits_gone.holds += sum.holds;
	c->limits_gone.held_ns += sum.held_ns;
}

static uint64_t sampling_end_ns(const struct children *c)
{
	return c->state->ended_ns != 0 ? c->state->ended_ns : state_now_ns(c->state);
}

void server_limit_sum(const struct children *c, struct server_limit_sum *ret)
{
	const uint64_t now_ns = sampling_end_ns(c);

	*ret = (struct server_limit_sum){0};
	add_limit(ret, &c->limits_gone, now_ns);
	for (size_t i = 0; i < c->n_ships; i++)
		add_limit(ret, &c->ships[i]->limit, now_ns);
}

size_t server_limit_servers(const struct children *c, struct limited_server ret[SHIPS_MAX])
{
	const uint64_t now_ns = sampling_end_ns(c), boot_ns = clock_boot_ns();
	size_t n = 0;

	for (size_t i = 0; i < c->n_ships; i++) {
		const struct ship *s = c->ships[i];
		const struct server_limit *l = &s->limit;
		size_t at = 0;

		if (s->label[0] == '\0')
			continue;
		ret[n] = (struct limited_server){0};
		memcpy(ret[n].name, s->label, sizeof(ret[n].name));
		while (strcmp(ret[at].name, ret[n].name) != 0)
			at++;
		n += at == n;
		add_limit(&ret[at].sum, l, now_ns);
		if (s->clock_ahead_s != 0)
			ret[at].clock_ahead_s = s->clock_ahead_s;
		ret[at].delivered_ns = max_u64(ret[at].delivered_ns, s->delivered_ns);
		if (s->denial.status != 0)
			ret[at].denial = &s->denial;
		if (l->until_ns > boot_ns)
			ret[at].limited_ns = max_u64(ret[at].limited_ns, l->until_ns - boot_ns);
	}
	return n;
}
