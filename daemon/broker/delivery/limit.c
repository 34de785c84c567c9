#include "daemon/broker/delivery/limit.h"

#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/common/log.h"
#include "lib/base/clock.h"
#include "proto/ratelimit.h"

/* ship cuts limits to this; more is no limit of a server. */
#define LIMIT_MAX_NS (RATELIMIT_MAX_S * NS_PER_SEC)

static bool goes_nowhere(const struct ship *s)
{
	return s->dsn[0] != '\0' && s->child.broker->output.dir_fd < 0;
}

int limit_take(struct ship *s, uint64_t until_ns)
{
	const uint64_t now_ns = clock_boot_ns();

	if (until_ns > now_ns + LIMIT_MAX_NS)
		return -EPROTO;
	s->limit.until_ns = until_ns;
	if (until_ns > now_ns)
		log_warning("%s: the server takes no profiles for %llu s: %s", s->place,
			    (unsigned long long)((until_ns - now_ns - 1) / NS_PER_SEC) + 1,
			    goes_nowhere(s) ? "nothing is sampled" : "they are not sent");
	return 0;
}

static void begin(const struct ship *s, struct limit *l, uint64_t now_ns)
{
	l->holds = true;
	l->since_ns = now_ns;
	l->pauses++;
	log_debug("%s: processes are let go: the server takes nothing", s->place);
}

static void end(const struct ship *s, struct limit *l, uint64_t now_ns)
{
	l->holds = false;
	l->paused_ns += now_ns - l->since_ns;
	log_debug("%s: the server takes profiles again", s->place);
}

void limit_check(struct broker *b)
{
	const uint64_t boot_ns = clock_boot_ns(), now_ns = broker_now_ns(b);

	if (!broker_samples(b))
		return;
	for (size_t i = 0; i < b->n_ships; i++) {
		struct limit *l = &b->ships[i]->limit;
		const bool limited = goes_nowhere(b->ships[i]) && boot_ns < l->until_ns;

		if (limited && !l->holds)
			begin(b->ships[i], l, now_ns);
		else if (!limited && l->holds)
			end(b->ships[i], l, now_ns);
	}
}

bool limit_holds(const struct instance *i)
{
	return i->ship != NULL && i->ship->limit.holds;
}

static void add(struct limit_sum *sum, const struct limit *l, uint64_t now_ns)
{
	sum->pauses += l->pauses;
	sum->paused_ns += l->paused_ns;
	if (!l->holds)
		return;
	sum->paused_ns += now_ns - l->since_ns;
	sum->until_ns = max_u64(sum->until_ns, l->until_ns);
}

void limit_ship_gone(struct broker *b, const struct ship *s)
{
	struct limit_sum sum = {0};

	add(&sum, &s->limit, broker_now_ns(b));
	b->limits_gone.pauses += sum.pauses;
	b->limits_gone.paused_ns += sum.paused_ns;
}

static uint64_t end_or_now_ns(const struct broker *b)
{
	return b->ended_ns != 0 ? b->ended_ns : broker_now_ns(b);
}

void limit_sum(const struct broker *b, struct limit_sum *ret)
{
	const uint64_t now_ns = end_or_now_ns(b);

	*ret = (struct limit_sum){0};
	add(ret, &b->limits_gone, now_ns);
	for (size_t i = 0; i < b->n_ships; i++)
		add(ret, &b->ships[i]->limit, now_ns);
}

size_t limit_servers(const struct broker *b, struct limit_server ret[SHIPS_MAX])
{
	const uint64_t now_ns = end_or_now_ns(b), boot_ns = clock_boot_ns();
	size_t n = 0;

	for (size_t i = 0; i < b->n_ships; i++) {
		const struct ship *s = b->ships[i];
		const struct limit *l = &s->limit;
		size_t at = 0;

		if (s->place[0] == '\0')
			continue;
		ret[n] = (struct limit_server){0};
		memcpy(ret[n].name, s->place, sizeof(ret[n].name));
		while (strcmp(ret[at].name, ret[n].name) != 0)
			at++;
		n += at == n;
		add(&ret[at].sum, l, now_ns);
		if (s->clock_ahead_s != 0)
			ret[at].clock_ahead_s = s->clock_ahead_s;
		ret[at].delivered_ns = max_u64(ret[at].delivered_ns, s->delivered_ns);
		if (l->until_ns > boot_ns)
			ret[at].limited_ns = max_u64(ret[at].limited_ns, l->until_ns - boot_ns);
	}
	return n;
}
