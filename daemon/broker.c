#include "daemon/broker.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/governor.h"
#include "daemon/log.h"
#include "daemon/pause.h"
#include "lib/base/clock.h"

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
