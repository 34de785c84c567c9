#include "daemon/broker/targets/governor.h"

#include "daemon/broker/children/child.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/rates.h"
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
 * The governor sets rates that cost AIM of the budget. The rates stay while the cost is between
 * ROOM of the budget and the whole of it.
 */
#define AIM  0.9
#define ROOM 0.7

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

	child->governed_used_ns = 0;
	if (child->pid == 0 || clock_process_ns(child->pid, &now) < 0)
		return 0;
	/* The child was restarted: all processor time of the new process counts. */
	if (child->governed_pid != child->pid)
		before = 0;
	child->governed_pid = child->pid;
	child->governed_cpu_ns = now;
	child->governed_used_ns = now - before;
	return (double)child->governed_used_ns;
}

/* Reads what all processes of sentry-profd have used since the last interval. */
static void read_used(struct targets *ts, uint64_t helpers_ns, struct governor_used *ret)
{
	uint64_t own;

	*ret = (struct governor_used){.capture = used_by(&ts->children->capture)};
	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		(void)used_by(&ts->children->unwinds[i]->child);
	for (size_t i = 0; i < ts->children->n_ships; i++)
		ret->others += used_by(&ts->children->ships[i]->child);
	/*
	 * The sum lacks the time of a helper that has ended until the broker has reaped the helper.
	 * The sum must not go back.
	 */
	own = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) + helpers_ns;
	own = max_u64(own, ts->governor->own_ns);
	ret->others += (double)(own - ts->governor->own_ns);
	ts->governor->own_ns = own;
}

/*
 * The work for one run since the last interval: the time of capture in ns, the number of samples
 * that capture made for unwind, and the processor time in ns that the target is charged with.
 */
struct work {
	double capture;
	double captured;
	double used;
};

static void read_work(const struct targets *ts, struct run *run, struct work *ret)
{
	struct capture_counters now;

	totals_capture(ts, run, &now);
	ret->capture = (double)(now.cost_ns - run->governed.cost_ns);
	ret->captured = (double)(now.captured - run->governed.captured);
	run->governed.cost_ns = now.cost_ns;
	run->governed.captured = now.captured;
}

static double share_of(double whole, double share, double sum, size_t n)
{
	return sum > 0 ? whole * share / sum : whole / (double)n;
}

/* Charges the time of capture and of the processes that serve all targets. */
static void charge_common(struct work *works, size_t n, const struct governor_used *used)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += works[i].capture;
	for (size_t i = 0; i < n; i++)
		works[i].used = share_of(used->capture, works[i].capture, sum, n) +
				used->others / (double)n;
}

/* Charges the time of an unwind process to its targets, by their samples. */
static void charge_unwind(struct targets *ts, struct work *works, const struct unwind *u)
{
	double sum = 0;
	size_t n = 0, i = 0;

	FOR_EACH_RUN (run, ts) {
		sum += run->unwind == u ? works[i].captured : 0;
		n += run->unwind == u;
		i++;
	}
	i = 0;
	FOR_EACH_RUN (run, ts) {
		if (run->unwind == u)
			works[i].used += share_of((double)u->child.governed_used_ns,
						  works[i].captured, sum, n);
		i++;
	}
}

/* Reads how many processors the target's process has used since the last interval. */
static bool read_busy(struct run *run, double *ret)
{
	const struct target_usage before = run->governed.usage, now = run->usage;

	run->governed.usage = now;
	if (before.time_ns == 0 || now.time_ns <= before.time_ns || now.cpu_ns < before.cpu_ns)
		return false;
	*ret = (double)(now.cpu_ns - before.cpu_ns) / (double)(now.time_ns - before.time_ns);
	return true;
}

/* Adds to the average cost of a target at its full rate. used: as a share of one processor. */
static void add_cost(struct run *run, double used)
{
	struct governed *g = &run->governed;
	double busy = 0;
	const bool is_known = read_busy(run, &busy);

	if (!run_is_withheld(run)) {
		governor_cost_add(&g->cost, used * run->full_hz / run->rate_hz);
		/*
		 * The first reading has no reading before it to compare with. The average ignores
		 * it.
		 */
		if (is_known || g->busy.n == 0)
			governor_cost_add(&g->busy, busy);
		return;
	}
	if (!is_known)
		return;
	if (g->cost_of_busy == 0 && busy > 0)
		g->cost_of_busy = g->cost.average / busy;
	governor_cost_add(&g->cost, g->cost_of_busy * busy);
}

static double all_used_ns(const struct targets *ts, const struct governor_used *used)
{
	double sum = used->capture + used->others;

	for (size_t i = 0; i < ts->children->n_unwinds; i++)
		sum += (double)ts->children->unwinds[i]->child.governed_used_ns;
	return sum;
}

static struct governor_user *find_user(struct governor_users *users, uint32_t uid)
{
	for (size_t k = 0; k < users->n; k++)
		if (users->list[k].uid == uid)
			return &users->list[k];
	return NULL;
}

/*
 * Returns the entry of the user uid. If there is none, makes one, in the place of the user with the
 * least use if the table is full.
 */
static struct governor_user *get_user(struct governor_users *users, uint32_t uid)
{
	struct governor_user *user = find_user(users, uid);

	if (user != NULL)
		return user;
	user = &users->list[0];
	if (users->n < GOVERNOR_USERS_MAX)
		user = &users->list[users->n++];
	else
		for (size_t k = 1; k < users->n; k++)
			if (users->list[k].use < user->use)
				user = &users->list[k];
	*user = (struct governor_user){.uid = uid};
	return user;
}

/* A user with less use than this counts as one without use. */
#define USE_MIN 1e-5

/* Adds one interval without use to the averages of all users, and forgets users without use. */
static void age_users(struct governor_users *users)
{
	size_t n = 0;

	for (size_t k = 0; k < users->n; k++) {
		struct governor_user user = users->list[k];

		user.use -= user.use / AVERAGE_SECONDS;
		user.is_admitted = false;
		if (user.use >= USE_MIN)
			users->list[n++] = user;
	}
	users->n = n;
}

/* Adds the last interval to the averages: charges what was used to the targets and users. */
static void add_costs(struct targets *ts, const struct governor_used *used, uint64_t elapsed_ns)
{
	static struct work works[HEARTBEAT_SLOTS];
	struct governor *g = ts->governor;
	const double all = all_used_ns(ts, used) / (double)elapsed_ns;
	double users = 0;
	size_t n = 0, i = 0;

	governor_cost_add(&g->all, all);
	age_users(&g->users);
	FOR_EACH_RUN (run, ts)
		read_work(ts, run, &works[n++]);
	charge_common(works, n, used);
	for (size_t k = 0; k < ts->children->n_unwinds; k++)
		charge_unwind(ts, works, ts->children->unwinds[k]);
	FOR_EACH_RUN (run, ts) {
		const double share = works[i++].used / (double)elapsed_ns;

		if (run->phase == RUN_PROFILED)
			add_cost(run, share);
		if (run_is_open(run))
			run->governed.is_for_user = instance_is_for_user(run->instance);
		if (!run->governed.is_for_user)
			continue;
		users += share;
		get_user(&g->users, instance_budget_user(run->instance))->use +=
			share / AVERAGE_SECONDS;
	}
	g->admission.share += (all - users - g->admission.share) / AVERAGE_SECONDS;
}

void governor_send_rate(struct targets *ts, const struct run *run)
{
	const struct msg_target_rate m = {
		.h = MSG_HEADER(MSG_TARGET_RATE),
		.target = run->id,
		.sampled_ticks = run_is_withheld(run) ? rates_least_hz(run->full_hz) : run->rate_hz,
		.of_ticks = ts->state->timer_hz,
		.is_withheld = run_is_withheld(run),
	};

	child_send(&ts->children->capture, &m, sizeof(m), NULL, 0);
}

static void set_rate(struct targets *ts, struct run *run, uint32_t rate_hz)
{
	if (rate_hz == run->rate_hz)
		return;
	log_debug("process %d is sampled at %u Hz", run->pid, rate_hz);
	run->rate_hz = rate_hz;
	ts->governor->all = (struct governor_cost){0};
	run->governed.cost.n = (uint32_t)min_u64(run->governed.cost.n, CHANGED_SECONDS);
	if (rate_hz == 0)
		run->governed.cost_of_busy =
			run->governed.busy.average > 0
				? run->governed.cost.average / run->governed.busy.average
				: 0;
	else if (rate_hz < run->governed.lowest_hz)
		run->governed.lowest_hz = rate_hz;
	governor_send_rate(ts, run);
}

void governor_count_lowered(struct targets *ts, struct governor_lowered *ret)
{
	*ret = (struct governor_lowered){0};
	FOR_EACH_RUN (run, ts) {
		if (run->phase != RUN_PROFILED)
			continue;
		ret->profiled++;
		ret->withheld += run_is_withheld(run);
		if (run->rate_hz >= run->full_hz || run_is_withheld(run))
			continue;
		if (ret->lowered++ == 0 || run->rate_hz < ret->least_hz)
			ret->least_hz = run->rate_hz;
		if (run->rate_hz > ret->most_hz)
			ret->most_hz = run->rate_hz;
	}
}

/* What sets the budget: a key of the service's configuration, or an option. */
static const char *budget_setting(const struct targets *ts)
{
	return options_is_service(&ts->state->options) ? "cpu_budget_percent" : "--cpu-budget";
}

static void log_rates(const struct targets *ts, const struct governor_lowered *now)
{
	const unsigned int budget = ts->state->options.config.cpu_budget;

	if (now->lowered == 0 && now->withheld == 0)
		log_warning("CPU budget %u %%: all processes are sampled at their full rates again",
			    budget);
	if (now->lowered == 1 && now->profiled == 1)
		log_warning("CPU budget %u %%: the process is sampled at only %u Hz (%s)", budget,
			    now->least_hz, budget_setting(ts));
	else if (now->lowered > 0)
		log_warning("CPU budget %u %%: %u of %u processes are sampled at only %u to %u Hz "
			    "(%s)",
			    budget, now->lowered, now->profiled, now->least_hz, now->most_hz,
			    budget_setting(ts));
	if (now->withheld > 0)
		log_warning("CPU budget %u %%: %u processes that users have attached are not "
			    "sampled: the parts of these users are used up (%s)",
			    budget, now->withheld, budget_setting(ts));
}

/* Logs the line for all targets, if the lowered ones or their rates have changed. */
static void log_lowered(struct targets *ts, uint64_t elapsed_ns)
{
	struct governor_logged *logged = &ts->governor->logged;
	struct governor_lowered now;

	logged->since_ns += elapsed_ns;
	if (logged->any && logged->since_ns < GOVERNOR_LOWERED_LOG_NS)
		return;
	governor_count_lowered(ts, &now);
	if (now.lowered == logged->what.lowered && now.least_hz == logged->what.least_hz &&
	    now.most_hz == logged->what.most_hz && now.withheld == logged->what.withheld)
		return;
	log_rates(ts, &now);
	*logged = (struct governor_logged){.what = now, .any = true};
}

/* Sets the part above which a user gets no new run. */
static void share_among_users(struct targets *ts, const struct rates_claim *claims, size_t n,
			      double budget)
{
	struct governor_users *users = &ts->governor->users;
	double uses[GOVERNOR_USERS_MAX];

	for (size_t k = 0; k < users->n; k++)
		uses[k] = users->list[k].use;
	users->part = rates_level(uses, users->n, rates_left_for_users(claims, n, budget));
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

/* Sets the rates of all targets if one target needs another rate, or fits again after the rate 0.
 */
static void set_rates(struct targets *ts)
{
	static struct run *targets[HEARTBEAT_SLOTS];
	static struct rates_claim claims[HEARTBEAT_SLOTS];
	static uint32_t rates[HEARTBEAT_SLOTS];
	const double budget = ts->state->options.config.cpu_budget / 100.0;
	bool lowered = false, all_lowest = true, is_due;
	double all = 0;
	size_t n = 0;

	FOR_EACH_RUN (run, ts) {
		if (run->phase != RUN_PROFILED)
			continue;
		lowered |= run->rate_hz < run->full_hz;
		all_lowest &= run->rate_hz <= RATES_MIN_HZ;
		all += run->governed.cost.average * run->rate_hz / run->full_hz;
		claims[n] = (struct rates_claim){
			.cost = run->governed.cost.average,
			.full_hz = run->full_hz,
			.is_for_user = run->governed.is_for_user,
			.user = instance_budget_user(run->instance),
		};
		targets[n++] = run;
	}
	share_among_users(ts, claims, n, budget);
	if (n == 0) {
		ts->governor->is_exceeded = false;
		return;
	}
	check_exceeded(ts, all_lowest);
	rates_share_out(claims, n, AIM * budget, rates);
	is_due = all > budget || (lowered && all <= ROOM * budget);
	for (size_t i = 0; i < n; i++)
		is_due |= run_is_withheld(targets[i]) && rates[i] > 0;
	for (size_t i = 0; i < n && is_due; i++)
		set_rate(ts, targets[i], rates[i]);
}

/* Restores the full rates: since a reload the governor has no budget. */
static void restore_rates(struct targets *ts)
{
	FOR_EACH_RUN (run, ts)
		if (run_is_open(run))
			set_rate(ts, run, run->full_hz);
}

/* Makes capture detach from targets that have had the rate 0 for GOVERNOR_WITHHELD_NS. */
static void detach_withheld(struct targets *ts)
{
	FOR_EACH_RUN (run, ts) {
		if (run->phase != RUN_PROFILED || run->governed.withheld_ns < GOVERNOR_WITHHELD_NS)
			continue;
		log_warning("process %d is detached: the part of its user (uid %u) of the CPU "
			    "budget was used up for %u s (%s); it is attached again in %u s at "
			    "the earliest",
			    run->pid, instance_budget_user(run->instance),
			    (unsigned int)(GOVERNOR_WITHHELD_NS / NS_PER_SEC), budget_setting(ts),
			    (unsigned int)(INSTANCE_BUDGET_WAIT_NS / NS_PER_SEC));
		instance_wait_for_budget(run->instance);
		attach_stop(ts, run);
	}
}

static void count_time(struct targets *ts, uint64_t elapsed_ns)
{
	FOR_EACH_RUN (run, ts) {
		if (run->rate_hz < run->full_hz)
			run->governed.lowered_ns += elapsed_ns;
		run->governed.withheld_ns =
			run_is_withheld(run) ? run->governed.withheld_ns + elapsed_ns : 0;
		if (ts->governor->is_exceeded && run->phase == RUN_PROFILED)
			run->governed.exceeded_ns += elapsed_ns;
	}
}

static bool is_over_budget(const struct targets *ts)
{
	return ts->state->options.config.cpu_budget > 0 &&
	       ts->governor->admission.share > ts->state->options.config.cpu_budget / 100.0;
}

bool governor_admits_user(struct targets *ts, const struct instance *i)
{
	struct governor_users *users = &ts->governor->users;
	struct governor_user *user = find_user(users, instance_budget_user(i));

	if (user == NULL || ts->state->options.config.cpu_budget == 0)
		return true;
	if (user->use > users->part || user->is_admitted)
		return false;
	user->is_admitted = true;
	return true;
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

void governor_add_interval(struct targets *ts, const struct governor_used *used,
			   uint64_t elapsed_ns)
{
	count_time(ts, elapsed_ns);
	add_costs(ts, used, elapsed_ns);
	if (ts->state->phase >= PHASE_DELIVERING)
		return;
	if (ts->state->options.config.cpu_budget == 0) {
		restore_rates(ts);
		ts->governor->is_exceeded = false;
		ts->governor->logged = (struct governor_logged){0};
		return;
	}
	set_rates(ts);
	detach_withheld(ts);
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
