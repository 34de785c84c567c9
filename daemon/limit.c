#include "daemon/limit.h"

#include "daemon/log.h"
#include "lib/base/clock.h"
#include "proto/ratelimit.h"

/* ship cuts limits to this; more is no limit of a server. */
#define LIMIT_MAX_NS (RATELIMIT_MAX_S * NS_PER_SEC)

static bool goes_nowhere(const struct broker *b)
{
	return b->has_dsn && b->output.dir_fd < 0;
}

int limit_take(struct broker *b, uint64_t until_ns)
{
	const uint64_t now_ns = clock_boot_ns();

	if (until_ns > now_ns + LIMIT_MAX_NS)
		return -EPROTO;
	b->limit.until_ns = until_ns;
	if (until_ns > now_ns)
		log_warning("the server takes no profiles for %llu s: %s",
			    (unsigned long long)((until_ns - now_ns - 1) /
						 NS_PER_SEC) +
				    1,
			    goes_nowhere(b) ? "nothing is sampled"
					    : "they are not sent");
	return 0;
}

static void begin(struct broker *b)
{
	b->limit.holds = true;
	b->limit.since_ns = broker_now_ns(b);
	b->limit.pauses++;
	log_debug("all processes are let go: the server takes nothing");
}

static void end(struct broker *b)
{
	b->limit.holds = false;
	b->limit.paused_ns += broker_now_ns(b) - b->limit.since_ns;
	log_debug("the server takes profiles again");
}

void limit_check(struct broker *b)
{
	const bool limited =
		goes_nowhere(b) && clock_boot_ns() < b->limit.until_ns;

	if (b->pausing || b->ended_ns != 0 || limited == b->limit.holds)
		return;
	if (limited)
		begin(b);
	else
		end(b);
}

uint64_t limit_paused_ns(const struct broker *b)
{
	uint64_t until = b->ended_ns != 0 ? b->ended_ns : broker_now_ns(b);

	return b->limit.paused_ns +
	       (b->limit.holds ? until - b->limit.since_ns : 0);
}
