#include "daemon/broker.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/governor.h"
#include "daemon/log.h"
#include "daemon/pause.h"
#include "lib/base/clock.h"

/* Heartbeat, restarts and deadlines are looked after this often. */
#define CHECK_MS 100

void broker_run_once(struct broker *b, int timeout_ms)
{
	int r = loop_run_once(b->loop, timeout_ms);

	if (r < 0) {
		log_error("epoll_wait: %s", strerror(-r));
		exit(EXIT_FAILURE);
	}
	children_check(b);
	files_check(b->files);
	targets_check(b);
	governor_check(b);
	if (b->pause_asked && !b->pausing)
		pause_broker(b);
}

uint64_t broker_now_ns(const struct broker *b)
{
	return clock_mono_ns() - b->away_ns;
}

int broker_wait_ms(const struct broker *b, uint64_t deadline_ns)
{
	uint64_t now = broker_now_ns(b);

	if (now >= deadline_ns)
		return 0;
	return (int)min_u64((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS,
			    CHECK_MS);
}
