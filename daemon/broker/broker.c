#include "daemon/broker/broker.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/children/idle.h"
#include "daemon/broker/children/overdue.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/operate.h"
#include "daemon/broker/control/record.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/delivery/limit.h"
#include "daemon/broker/pause.h"
#include "daemon/broker/service.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/measure.h"
#include "daemon/common/log.h"
#include "lib/base/clock.h"

/*
 * Heartbeat, restarts and deadlines are looked after this often, and less often
 * while capture shows a new beat each time: a wake for nothing costs about 30
 * us. A beat that grows old is then noticed a little later, and still looked at
 * as many times as it takes.
 */
#define CHECK_MS      100
#define CHECK_CALM_MS 250

static void each_second(struct broker *b)
{
	const uint64_t now_ns = clock_mono_ns();

	if (now_ns - b->second_ns < NS_PER_SEC)
		return;
	b->second_ns = now_ns;
	loop_resume(b->loop);
	overdue_look(b);
	if (b->discovery != NULL && b->phase == BROKER_PROFILES)
		idle_check(b, now_ns);
}

/*
 * Frees what has ended, in the order in which objects point to each other: a
 * client, a target, an envelope and a recording to an instance, these to their
 * processes.
 */
static void sweep(struct broker *b)
{
	clients_sweep(b);
	targets_sweep(b);
	delivery_sweep(b);
	records_sweep(b);
	instances_sweep(b);
	children_sweep(b);
}

void broker_run_once(struct broker *b, int timeout_ms)
{
	int r = loop_run_once(b->loop, timeout_ms);

	if (r < 0) {
		log_error("epoll_wait: %s", strerror(-r));
		exit(EXIT_FAILURE);
	}
	each_second(b);
	children_check(b);
	files_check(b->files);
	limit_check(b);
	operate_check(b);
	if (b->discovery != NULL && b->phase == BROKER_PROFILES)
		discovery_check(b->discovery);
	clients_check(b);
	instances_check(b);
	targets_check(b);
	records_check(b);
	inspect_check(b);
	governor_check(b);
	measure_check(b);
	progress_check(b);
	service_check(b);
	log_check();
	sweep(b);
	if (b->pause_asked && !b->pausing)
		pause_broker(b);
}

void broker_goes_on_to(struct broker *b, enum broker_phase phase)
{
	if (b->phase < phase)
		b->phase = phase;
}

uint64_t broker_now_ns(const struct broker *b)
{
	return clock_mono_ns() - b->away_ns;
}

int broker_wait_ms(const struct broker *b, uint64_t deadline_ns)
{
	uint64_t now = broker_now_ns(b);
	bool calm = b->phase < BROKER_SAMPLED && b->capture.pid != 0 && b->beat_looks == 0;
	uint64_t wait_ms = calm ? CHECK_CALM_MS : CHECK_MS;

	if (now >= deadline_ns)
		return 0;
	if (b->discovery != NULL && b->phase == BROKER_PROFILES)
		wait_ms = min_u64(wait_ms, discovery_wait_ms(b->discovery));
	return (int)min_u64((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS, wait_ms);
}

uint32_t broker_timer_hz(const struct options *o)
{
	uint32_t highest = o->config.rate_hz;

	for (size_t k = 0; k < o->config.n_targets; k++)
		if (o->config.targets[k].rate_hz > highest)
			highest = o->config.targets[k].rate_hz;
	return highest;
}
