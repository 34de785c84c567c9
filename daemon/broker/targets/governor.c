#include "daemon/broker/targets/governor.h"

#include "daemon/broker/children/child.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/log.h"
#include "daemon/msg/msg_capture.h"
#include "lib/base/clock.h"

#define CHECK_NS NS_PER_SEC

/*
 * The budget is compared with an average over about this many seconds: reading the files of a
 * new program takes some hundred milliseconds, but only once.
 */
#define AVERAGE_SECONDS 10

/*
 * After a change of the rate the earlier average counts as one second only: half the rate is not
 * half the cost if many threads share a processor.
 */
#define CHANGED_SECONDS 3

/*
 * Rates are set for AIM of the budget. They stay while the cost is between ROOM of the budget
 * and the whole of it.
 */
#define AIM  0.9
#define ROOM 0.7

/* Returns the lowest rate of a target with this full rate. */
static uint32_t least_hz(uint32_t full_hz)
{
	return full_hz < GOVERNOR_RATE_MIN_HZ ? full_hz : GOVERNOR_RATE_MIN_HZ;
}

/* Returns what the targets cost if none may cost more than level. */
static double cost_at(const double *costs, const uint32_t *full_hz, size_t n, double level)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		double floor = costs[i] * least_hz(full_hz[i]) / full_hz[i];
		double cost = costs[i] < level ? costs[i] : level;

		sum += cost > floor ? cost : floor;
	}
	return sum;
}

static bool is_prime(uint32_t n)
{
	for (uint32_t d = 2; d * d <= n; d++)
		if (n % d == 0)
			return false;
	return n >= 2;
}

/*
 * Returns the highest prime up to rate, but not below least. At a lowered rate of 20 Hz, the
 * samples would coincide with a loop of the target that runs at 20 Hz, to the tick. The lowest
 * rate, 11, and the default, 101, are primes, too.
 */
static uint32_t prime_up_to(double rate, uint32_t least)
{
	uint32_t hz = (uint32_t)rate;

	while (hz > least && !is_prime(hz))
		hz--;
	return hz < least ? least : hz;
}

void governor_compute_rates(const double *costs, const uint32_t *full_hz, size_t n, double budget,
			    uint32_t *ret_rates)
{
	double low = 0, high = 0;

	for (size_t i = 0; i < n; i++)
		if (costs[i] > high)
			high = costs[i];
	/* Twenty halvings make the level exact to a millionth. */
	if (cost_at(costs, full_hz, n, high) > budget) {
		for (int i = 0; i < 20; i++) {
			double level = (low + high) / 2;

			if (cost_at(costs, full_hz, n, level) > budget)
				high = level;
			else
				low = level;
		}
	} else {
		low = high;
	}
	for (size_t i = 0; i < n; i++) {
		ret_rates[i] = costs[i] > low ? prime_up_to(full_hz[i] * low / costs[i],
							    least_hz(full_hz[i]))
					      : full_hz[i];
	}
}

void governor_cost_add(struct governor_cost *c, double cost)
{
	c->n++;
	switch (c->n) {
	case 1:
		return;
	case 2:
		c->first = cost;
		return;
	case 3:
		c->average = cost < c->first ? cost : c->first;
		return;
	default:
		c->average += (cost - c->average) / (double)min_u64(c->n - 2, AVERAGE_SECONDS);
	}
}

/* Returns the processor time of a child since the last call, in ns; 0 if it does not run. */
static double used_by(struct child *child)
{
	uint64_t now = 0, before = child->governed_cpu_ns;

	if (child->pid == 0 || clock_process_ns(child->pid, &now) < 0)
		return 0;
	/* A restarted child: all its time is new. */
	if (child->governed_pid != child->pid)
		before = 0;
	child->governed_pid = child->pid;
	child->governed_cpu_ns = now;
	return (double)(now - before);
}

/*
 * The work for one target since the last interval: time of capture in ns, and samples captured
 * for unwind.
 */
struct work {
	double capture;
	double unwind;
};

static void read_work(const struct targets *ts, struct target *t, struct work *ret)
{
	struct capture_counters now;

	totals_capture(ts, t, &now);
	ret->capture = (double)(now.cost_ns - t->governed.cost_ns);
	ret->unwind = (double)(now.captured - t->governed.captured);
	t->governed.cost_ns = now.cost_ns;
	t->governed.captured = now.captured;
}

static double share_of(double whole, double share, double sum, size_t n)
{
	return sum > 0 ? whole * share / sum : whole / (double)n;
}

/* Reads what all processes of sentry-profd have used since the last interval. */
static void read_used(struct targets *ts, uint64_t helpers_ns, struct governor_used *ret)
{
	uint64_t own;

	*ret = (struct governor_used){.capture = used_by(&ts->children->capture)};
	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		ret->unwind += used_by(&ts->children->unwinds[i]->child);
	for (size_t i = 0; i < ts->children->n_ships; i++)
		ret->others += used_by(&ts->children->ships[i]->child);
	/*
	 * The time of a helper that has ended is missing until it is reaped: the sum must not go
	 * back.
	 */
	own = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) + helpers_ns;
	own = max_u64(own, ts->governor->own_ns);
	ret->others += (double)(own - ts->governor->own_ns);
	ts->governor->own_ns = own;
}

/* Adds the last interval to the averages: shares out what was used among the targets. */
static void add_costs(struct targets *ts, const struct governor_used *used_now, uint64_t elapsed_ns)
{
	static struct work works[HEARTBEAT_SLOTS];
	const double capture = used_now->capture, unwind = used_now->unwind;
	const double others = used_now->others;
	struct work sum = {0};
	size_t n = 0, i = 0;

	governor_cost_add(&ts->governor->all, (capture + unwind + others) / (double)elapsed_ns);
	FOR_EACH_TARGET (t, ts) {
		struct work *work = &works[n++];

		read_work(ts, t, work);
		sum.capture += work->capture;
		sum.unwind += work->unwind;
	}
	FOR_EACH_TARGET (t, ts) {
		const struct work *work = &works[i++];
		double used = share_of(capture, work->capture, sum.capture, n) +
			      share_of(unwind, work->unwind, sum.unwind, n) + others / (double)n;
		double cost = used / (double)elapsed_ns * t->full_hz / t->rate_hz;

		if (t->phase == TARGET_PROFILED)
			governor_cost_add(&t->governed.cost, cost);
	}
}

void governor_send_rate(struct targets *ts, const struct target *t)
{
	const struct msg_target_rate m = {
		.h = MSG_HEADER(MSG_TARGET_RATE),
		.target = t->id,
		.sampled_ticks = t->rate_hz,
		.of_ticks = ts->state->timer_hz,
	};

	child_send(&ts->children->capture, &m, sizeof(m), NULL, 0);
}

static void set_rate(struct targets *ts, struct target *t, uint32_t rate_hz)
{
	if (rate_hz == t->rate_hz)
		return;
	log_debug("process %d is sampled at %u Hz", t->pid, rate_hz);
	t->rate_hz = rate_hz;
	ts->governor->all = (struct governor_cost){0};
	t->governed.cost.n = (uint32_t)min_u64(t->governed.cost.n, CHANGED_SECONDS);
	if (rate_hz < t->governed.lowest_hz)
		t->governed.lowest_hz = rate_hz;
	governor_send_rate(ts, t);
}

void governor_lowered(struct targets *ts, struct governor_lowered *ret)
{
	*ret = (struct governor_lowered){0};
	FOR_EACH_TARGET (t, ts) {
		if (t->phase != TARGET_PROFILED)
			continue;
		ret->profiled++;
		if (t->rate_hz >= t->full_hz)
			continue;
		if (ret->lowered++ == 0 || t->rate_hz < ret->least_hz)
			ret->least_hz = t->rate_hz;
		if (t->rate_hz > ret->most_hz)
			ret->most_hz = t->rate_hz;
	}
}

/* Logs the line for all targets, if the lowered ones or their rates have changed. */
static void log_lowered(struct targets *ts, uint64_t elapsed_ns)
{
	struct governor_logged *logged = &ts->governor->logged;
	struct governor_lowered now;

	logged->since_ns += elapsed_ns;
	if (logged->any && logged->since_ns < GOVERNOR_LOWERED_LOG_NS)
		return;
	governor_lowered(ts, &now);
	if (now.lowered == logged->what.lowered && now.least_hz == logged->what.least_hz &&
	    now.most_hz == logged->what.most_hz)
		return;
	if (now.lowered == 0)
		log_warning("CPU budget %u %%: all targets are sampled at their full rates again",
			    ts->state->options.config.cpu_budget);
	else
		log_warning("CPU budget %u %%: %u of %u targets are sampled at only %u to %u Hz "
			    "(cpu_budget_percent)",
			    ts->state->options.config.cpu_budget, now.lowered, now.profiled,
			    now.least_hz, now.most_hz);
	*logged = (struct governor_logged){.what = now, .any = true};
}

/*
 * Logs a line if the lowest rates still exceed the budget. The governor assumes that a target's
 * cost is proportional to its rate. Costs that are not, such as stops by the target's own
 * signals, show only in what is used at these rates.
 */
static void check_exceeded(struct targets *ts, bool all_lowest)
{
	const double share = ts->governor->all.average;
	const bool exceeded = all_lowest && share > ts->state->options.config.cpu_budget / 100.0;

	if (exceeded && !ts->governor->is_exceeded)
		log_warning("profiling uses %.1f %% of a processor, more than the budget of %u %%, "
			    "although all targets are at the lowest rate (their signals, new "
			    "threads and new processes cost the same at any rate): raise the "
			    "budget or profile fewer processes",
			    100 * share, ts->state->options.config.cpu_budget);
	ts->governor->is_exceeded = exceeded;
}

static void set_rates(struct targets *ts)
{
	static struct target *targets[HEARTBEAT_SLOTS];
	static double costs[HEARTBEAT_SLOTS];
	static uint32_t full_hz[HEARTBEAT_SLOTS], rates[HEARTBEAT_SLOTS];
	const double budget = ts->state->options.config.cpu_budget / 100.0;
	bool lowered = false, all_lowest = true;
	double all = 0;
	size_t n = 0;

	FOR_EACH_TARGET (t, ts) {
		if (t->phase != TARGET_PROFILED)
			continue;
		lowered |= t->rate_hz < t->full_hz;
		all_lowest &= t->rate_hz <= GOVERNOR_RATE_MIN_HZ;
		all += t->governed.cost.average * t->rate_hz / t->full_hz;
		full_hz[n] = t->full_hz;
		costs[n] = t->governed.cost.average;
		targets[n++] = t;
	}
	if (n == 0)
		return;
	check_exceeded(ts, all_lowest);
	if (all <= budget && (!lowered || all > ROOM * budget))
		return;
	governor_compute_rates(costs, full_hz, n, AIM * budget, rates);
	for (size_t i = 0; i < n; i++)
		set_rate(ts, targets[i], rates[i]);
}

static void count_time(struct targets *ts, uint64_t elapsed_ns)
{
	FOR_EACH_TARGET (t, ts) {
		if (t->rate_hz < t->full_hz)
			t->governed.lowered_ns += elapsed_ns;
		if (ts->governor->is_exceeded && t->phase == TARGET_PROFILED)
			t->governed.exceeded_ns += elapsed_ns;
	}
}

static bool is_over_budget(const struct targets *ts)
{
	return ts->state->options.config.cpu_budget > 0 &&
	       ts->governor->admission.share > ts->state->options.config.cpu_budget / 100.0;
}

bool governor_admits(struct targets *ts, struct instance *i, uint64_t now_ns)
{
	struct governor_admission *admission = &ts->governor->admission;

	if (!is_over_budget(ts))
		return true;
	if (now_ns - admission->admitted_ns >= GOVERNOR_ADMIT_NS) {
		admission->admitted_ns = now_ns;
		return true;
	}
	admission->delayed += !i->is_delayed;
	i->is_delayed = true;
	if (admission->logged_ns == 0 || now_ns - admission->logged_ns >= GOVERNOR_ADMIT_LOG_NS) {
		admission->logged_ns = now_ns;
		log_warning("profiling uses %.1f %% of a processor, more than the budget of %u %%: "
			    "new processes are attached later, one a second (a higher "
			    "min_age_seconds leaves short-lived ones out)",
			    100 * admission->share, ts->state->options.config.cpu_budget);
	}
	return false;
}

static void add_share(struct targets *ts, const struct governor_used *used, uint64_t elapsed_ns)
{
	const double share = (used->capture + used->unwind + used->others) / (double)elapsed_ns;

	ts->governor->admission.share += (share - ts->governor->admission.share) / AVERAGE_SECONDS;
}

void governor_add_interval(struct targets *ts, const struct governor_used *used,
			   uint64_t elapsed_ns)
{
	add_share(ts, used, elapsed_ns);
	count_time(ts, elapsed_ns);
	add_costs(ts, used, elapsed_ns);
	if (ts->state->options.config.cpu_budget == 0 || ts->state->phase >= PHASE_DELIVERING)
		return;
	set_rates(ts);
	log_lowered(ts, elapsed_ns);
}

bool governor_is_due(const struct targets *ts)
{
	const uint64_t ran_ns = ts->governor->ran_ns;

	return ran_ns == 0 || clock_mono_ns() - ran_ns >= CHECK_NS;
}

void governor_check(struct targets *ts, uint64_t helpers_ns)
{
	const uint64_t now = clock_mono_ns(), before = ts->governor->ran_ns;
	struct governor_used used;

	if (before != 0) {
		read_used(ts, helpers_ns, &used);
		governor_add_interval(ts, &used, now - before);
	}
	ts->governor->ran_ns = now;
}
