#include "daemon/limit.h"

#include <string.h>

#include "daemon/child.h"
#include "daemon/id.h"
#include "daemon/log.h"
#include "daemon/pause.h"
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

/* What there is of each is a chunk now, and the next one is another's. */
static void renew_sessions(struct broker *b)
{
	FOR_EACH_TARGET(t, b)
	{
		struct msg_session_renew m = {
			.h = MSG_HEADER(MSG_SESSION_RENEW, msg_session_renew),
			.target = t->id,
		};

		id_make(t->profiler_id);
		if (t->session == SESSION_NONE || t->phase == TARGET_CLOSED)
			continue;
		memcpy(m.profiler_id, t->profiler_id, sizeof(m.profiler_id));
		child_send(&t->unwind->child, &m, sizeof(m), NULL, 0);
	}
}

/* Ticks until now were missed if there was no capture; from now on none are. */
static void begin(struct broker *b)
{
	const uint64_t now = clock_mono_ns();

	FOR_EACH_TARGET(t, b)
	target_count_absence(b, t, now);
	targets_resumed(b, now);
	b->limit.since_ns = broker_now_ns(b);
	b->limit.pauses++;
	b->limit.phase = LIMIT_BEGINS;
	pause_capture(b);
	patience_start(&b->limit.patience, now);
}

static void wait_for_capture(struct broker *b)
{
	if (b->capture.pid == 0) {
		renew_sessions(b);
		b->limit.phase = LIMIT_HOLDS;
		log_debug("all processes are let go: the server takes nothing");
		return;
	}
	pause_watch(b, &b->limit.patience);
}

static void end(struct broker *b)
{
	b->limit.paused_ns += broker_now_ns(b) - b->limit.since_ns;
	b->limit.phase = LIMIT_NONE;
	pause_over(b, clock_mono_ns());
	log_debug("the server takes profiles again");
}

void limit_check(struct broker *b)
{
	const bool limited = clock_boot_ns() < b->limit.until_ns;

	if (b->pausing || b->ended_ns != 0)
		return;
	switch (b->limit.phase) {
	case LIMIT_NONE:
		if (limited && goes_nowhere(b))
			begin(b);
		return;
	case LIMIT_BEGINS:
		wait_for_capture(b);
		return;
	case LIMIT_HOLDS:
		if (!limited)
			end(b);
		return;
	}
}

uint64_t limit_paused_ns(const struct broker *b)
{
	uint64_t until = b->ended_ns != 0 ? b->ended_ns : broker_now_ns(b);

	return b->limit.paused_ns +
	       (b->limit.phase != LIMIT_NONE ? until - b->limit.since_ns : 0);
}
