#include "daemon/broker/report/service.h"

#include <string.h>

#include "daemon/broker/children/reap.h"
#include "daemon/broker/children/limit.h"
#include "daemon/common/log.h"
#include "lib/base/clock.h"

void service_init(struct broker *b)
{
	int r = notify_init(&b->notify);

	if (r == -EINVAL)
		log_warning("NOTIFY_SOCKET, WATCHDOG_USEC or WATCHDOG_PID is "
			    "not what systemd sets: it is not told of us");
	else if (r < 0)
		log_warning("cannot tell systemd of us: %s", strerror(-r));
}

/* How many are profiled, and how many wait to be. */
static void count(struct broker *b, size_t *ret_profiled, size_t *ret_waiting)
{
	*ret_profiled = 0;
	*ret_waiting = 0;
	FOR_EACH_TARGET (t, &b->targets) {
		*ret_profiled += t->phase == TARGET_PROFILED;
		*ret_waiting += t->phase == TARGET_WAITING;
	}
}

static bool is_limited(const struct broker *b)
{
	struct limit_sum sum;

	limit_sum(&b->children, &sum);
	return sum.until_ns != 0;
}

static void tell_status(struct broker *b, size_t profiled, size_t waiting)
{
	if (b->state.phase >= PHASE_STOPS)
		notify_status(&b->notify, "the last chunks are delivered");
	else if (waiting == 0 && profiled == 0 && is_limited(b))
		notify_status(&b->notify, "nothing is sampled: the server "
					  "takes no profiles");
	else if (waiting > 0)
		notify_status(&b->notify, "%zu processes profiled, %zu wait", profiled, waiting);
	else
		notify_status(&b->notify, "%zu process%s profiled", profiled,
			      profiled == 1 ? "" : "es");
}

void service_check(struct broker *b)
{
	const uint64_t now_ns = clock_mono_ns();
	uint64_t beat = 0;
	size_t profiled, waiting;

	count(b, &profiled, &waiting);
	tell_status(b, profiled, waiting);
	if (b->notify.state == NOTIFY_STARTING && b->children.has_worked[CHILD_CAPTURE] &&
	    b->children.has_worked[CHILD_SHIP])
		notify_state(&b->notify, NOTIFY_READY, now_ns);
	if (b->children.heartbeat != NULL)
		beat = __atomic_load_n(&b->children.heartbeat->beat.time_ns, __ATOMIC_RELAXED);
	notify_check(&b->notify, now_ns, beat,
		     profiled == 0 || !child_is_wanted(&b->children.capture));
}

void service_reloads(struct broker *b)
{
	notify_state(&b->notify, NOTIFY_RELOADING, clock_mono_ns());
}

void service_reloaded(struct broker *b)
{
	if (b->notify.state == NOTIFY_RELOADING)
		notify_state(&b->notify, NOTIFY_READY, clock_mono_ns());
}

void service_stops(struct broker *b)
{
	notify_state(&b->notify, NOTIFY_STOPPING, clock_mono_ns());
}
