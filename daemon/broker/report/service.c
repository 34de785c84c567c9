#include "daemon/broker/report/service.h"

#include <stdio.h>
#include <string.h>

#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/children/watch.h"
#include "daemon/common/log.h"
#include "lib/base/clock.h"

void service_init(struct notify *n)
{
	int r = notify_init(n);

	if (r == -EINVAL)
		log_warning("NOTIFY_SOCKET, WATCHDOG_USEC or WATCHDOG_PID is "
			    "not what systemd sets: systemd is not notified, and may take "
			    "sentry-profd for not started");
	else if (r < 0)
		log_warning("cannot notify systemd: %s: systemd will take sentry-profd for not "
			    "started, and may end it",
			    strerror(-r));
}

/* Counts the processes that are profiled, and those that wait for it. */
static void count_runs(struct modules *modules, size_t *ret_profiled, size_t *ret_waiting)
{
	*ret_profiled = 0;
	*ret_waiting = 0;
	FOR_EACH_RUN (run, &modules->targets) {
		*ret_profiled += run->phase == RUN_PROFILED;
		*ret_waiting += run->phase == RUN_WAITING;
	}
}

static bool is_limited(const struct modules *modules)
{
	struct server_limit_sum sum;

	server_limit_sum(&modules->children, &sum);
	return sum.is_held;
}

/* Writes the gravest degraded state and the number of the others. */
static const char *degraded_text(const struct degraded *d, char *ret, size_t size)
{
	const size_t n = degraded_count(d);
	const char *name = n > 0 ? degraded_kind_texts[degraded_next(d, 0)].name : "";

	ret[0] = '\0';
	if (n == 1)
		(void)snprintf(ret, size, "; degraded: %s", name);
	else if (n > 1)
		(void)snprintf(ret, size, "; degraded: %s and %zu more", name, n - 1);
	return ret;
}

static void report_status(struct notify *n, const struct modules *modules, size_t profiled,
			  size_t waiting)
{
	char text[NOTIFY_STATUS_MAX];
	const char *degraded = degraded_text(&modules->state.degraded, text, sizeof(text));

	if (modules->state.phase >= PHASE_STOPPING)
		notify_status(n, "delivering the last chunks%s", degraded);
	else if (waiting == 0 && profiled == 0 && is_limited(modules))
		notify_status(n, "nothing is sampled: the server takes no profiles%s", degraded);
	else if (waiting > 0)
		notify_status(n, "%zu processes profiled, %zu wait%s", profiled, waiting, degraded);
	else
		notify_status(n, "%zu process%s profiled%s", profiled, profiled == 1 ? "" : "es",
			      degraded);
}

void service_check(struct notify *n, struct modules *modules)
{
	const uint64_t now_ns = clock_mono_ns();
	uint64_t beat = 0;
	size_t profiled, waiting;

	count_runs(modules, &profiled, &waiting);
	report_status(n, modules, profiled, waiting);
	if (n->state == NOTIFY_STARTING && modules->children.has_worked[CHILD_CAPTURE] &&
	    modules->children.has_worked[CHILD_SHIP])
		notify_state(n, NOTIFY_READY, now_ns);
	if (modules->children.heartbeat != NULL)
		beat = watch_beat_ns(&modules->children);
	notify_check(n, now_ns, beat,
		     profiled == 0 || !child_is_wanted(&modules->children.capture));
}

void service_reloads(struct notify *n)
{
	/* The READY=1 that ends a reload would end the start, too. */
	if (n->state == NOTIFY_READY)
		notify_state(n, NOTIFY_RELOADING, clock_mono_ns());
}

void service_reloaded(struct notify *n)
{
	if (n->state == NOTIFY_RELOADING)
		notify_state(n, NOTIFY_READY, clock_mono_ns());
}

void service_stops(struct notify *n)
{
	notify_state(n, NOTIFY_STOPPING, clock_mono_ns());
}
