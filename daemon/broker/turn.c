#include "daemon/broker/turn.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/children/watch.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/recordings.h"
#include "daemon/broker/control/requests.h"
#include "daemon/broker/deadlines.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/report/health.h"
#include "daemon/broker/report/service.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/held_execs.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/broker/targets/target_usage.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/log.h"
#include "lib/base/clock.h"

/*
 * How often heartbeat, restarts and deadlines are checked: less often while capture shows a new
 * beat each time, since a wake-up costs about 30 us. Then an old beat is noticed a little later,
 * and still checked as many times as watch.c wants.
 */
#define CHECK_MS      100
#define CHECK_CALM_MS 250

static void each_second(struct broker *b)
{
	const uint64_t now_ns = clock_mono_ns();

	if (now_ns - b->each_second_ns < NS_PER_SEC)
		return;
	b->each_second_ns = now_ns;
	loop_resume(b->modules.state.loop);
	deadlines_check_answers(b);
	owners_check_all(&b->modules.targets);
	health_check(&b->modules);
	if (b->modules.state.phase == PHASE_PROFILING) {
		deadlines_end_unused_unwinds(b, now_ns);
		if (b->modules.discovery != NULL)
			deadlines_end_unused_ships(b, now_ns);
	}
}

/*
 * Frees the objects that have ended, those that refer to others first: clients, runs,
 * envelopes and recordings refer to instances, and these to children.
 */
static void sweep(struct broker *b)
{
	clients_sweep(&b->requests.clients);
	targets_sweep(&b->modules.targets);
	delivery_sweep(&b->modules.delivery);
	recordings_sweep(&b->requests.recordings);
	instances_sweep(&b->modules.targets);
	children_sweep(&b->modules.children);
}

static void check_heartbeat(struct broker *b)
{
	uint32_t target;

	if (!watch_capture_hangs(&b->modules.children, &target))
		return;
	if (target != 0)
		totals_capture_died(&b->modules.targets, target);
	watch_kill_capture(&b->modules.children);
}

/* Returns the processor time of the helpers that open files. */
static uint64_t helpers_ns(const struct broker *b)
{
	uint64_t ns = files_used_ns(b->modules.files);

	return b->modules.discovery == NULL ? ns : ns + discovery_used_ns(b->modules.discovery);
}

void turn_run_once(struct broker *b, int timeout_ms)
{
	int r = loop_run_once(b->modules.state.loop, timeout_ms);

	if (r < 0) {
		log_error("sentry-profd ends: waiting for events failed: epoll_wait: %s",
			  strerror(-r));
		exit(EXIT_FAILURE);
	}
	each_second(b);
	check_heartbeat(b);
	children_check(&b->modules.children);
	files_check(b->modules.files);
	server_limit_check(&b->modules.children, delivery_has_files(&b->modules.delivery));
	requests_check(&b->requests);
	if (b->modules.discovery != NULL && b->modules.state.phase == PHASE_PROFILING)
		discovery_check(b->modules.discovery);
	/* Clients want runs, instances_check() starts them, and attach_check() attaches. */
	clients_check(&b->requests.clients);
	instances_check(&b->modules.targets);
	attach_check(&b->modules.targets);
	held_execs_check(&b->modules.targets);
	/* After the questions of attach_check(), which become requests for files. */
	leak_check_turn(&b->modules.leak_check);
	files_check(b->modules.files);
	/* After attach_check(): a recording begins in an open session. */
	recordings_check(&b->requests.recordings);
	inspect_check(&b->requests.inspector);
	if (governor_is_due(&b->modules.targets))
		governor_check(&b->modules.targets, helpers_ns(b));
	target_usage_check(&b->modules.targets);
	progress_check(&b->progress, &b->modules.targets);
	service_check(&b->notify, &b->modules);
	log_report_suppressed();
	sweep(b);
}

int turn_wait_ms(const struct broker *b, uint64_t deadline_ns)
{
	uint64_t now = state_now_ns(&b->modules.state);
	bool calm = b->modules.state.phase < PHASE_DELIVERING &&
		    b->modules.children.capture.pid != 0 &&
		    b->modules.children.watch.stale_checks == 0;
	uint64_t wait_ms = calm ? CHECK_CALM_MS : CHECK_MS;

	if (now >= deadline_ns)
		return 0;
	if (b->modules.discovery != NULL && b->modules.state.phase == PHASE_PROFILING)
		wait_ms = min_u64(wait_ms, discovery_wait_ms(b->modules.discovery));
	return (int)min_u64((deadline_ns - now + NS_PER_MS - 1) / NS_PER_MS, wait_ms);
}
