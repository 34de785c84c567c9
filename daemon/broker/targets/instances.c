#include "daemon/broker/targets/instances.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker/children/children.h"
#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/governor.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/broker/targets/session_sampling.h"
#include "daemon/broker/targets/totals.h"
#include "daemon/common/log.h"
#include "daemon/common/random.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/config/config.h"
#include "daemon/config/config_resolve.h"
#include "daemon/process/process.h"
#include "daemon/process/refusal.h"
#include "daemon/process/threads.h"
#include "lib/base/array.h"
#include "lib/base/clock.h"

/*
 * How often a process whose release is over is checked for another tracer; as often as a process
 * that waits for one to be attached (attach.c).
 */
#define RELEASE_LOOK_NS NS_PER_SEC

/* A loop_fn of the pidfd: the process has ended. ctx is the instance. */
static void on_process_end(void *ctx)
{
	struct instance *i = ctx;

	instance_becomes(i, INSTANCE_ENDED);
	loop_remove(i->targets->state->loop, &i->source);
}

static int watch(struct instance *i)
{
	return loop_add(i->targets->state->loop, i->pidfd, on_process_end, i, &i->source);
}

static int make_room(struct targets *ts)
{
	return ts->n_instances == INSTANCES_MAX
		       ? -ENOSPC
		       : array_grow(ts->instances, ts->n_instances, ts->instances_size);
}

/*
 * Adds an instance. On success it owns the pidfd, which is taken out of p. Before the event loop
 * exists, the end of the process is not watched: instances_watch() does so later.
 */
static int add_instance(struct targets *ts, struct process *p, struct instance **ret)
{
	struct process_identity now = {0};
	struct instance *i;
	int r = make_room(ts);

	if (r < 0)
		return r;
	i = calloc(1, sizeof(*i));
	if (i == NULL)
		return -ENOMEM;
	i->targets = ts;
	i->pid = p->pid;
	i->parent = p->parent;
	i->start_ticks = p->start_ticks;
	(void)process_identity(p->pid, &now);
	i->program_hash = now.program_hash;
	i->pidfd = p->pidfd;
	/* A child of the tick under way may have been born before. */
	i->followed_since_ticks = process_ticks_now() + 1;
	random_id(i->next_profiler_id);
	r = owner_read(p->pid, &i->owner);
	if (r == 0 && ts->state->loop != NULL)
		r = watch(i);
	if (r < 0) {
		free(i);
		return r;
	}
	(void)process_take_pidfd(p);
	ts->instances[ts->n_instances++] = i;
	*ret = i;
	return 0;
}

/* refused_program: as the member of struct instance. */
static void leave_out(struct instance *i, uint64_t refused_program, const char *why)
{
	i->obstacle = INSTANCE_LEFT_OUT;
	i->has_leak_check = i->run != NULL && i->run->has_leak_check;
	i->refused_program = refused_program;
	(void)snprintf(i->last_error, sizeof(i->last_error), "%s", why);
}

/*
 * Copies a section of the current configuration. A user's start or stop stays in effect. A process
 * that the command line or a user has named is profiled whatever the sampling rate says.
 */
static void configure(struct instance *i, const struct section_config *section)
{
	const struct targets *ts = i->targets;
	struct section_config *c = &i->config;

	*c = *section;
	/* The DSN, and with it the server's rate limit, may be another one. */
	i->ship = NULL;
	/* Spotlight gets all processes that have no other destination. */
	i->is_sampled = !instance_has_section(i) ||
			(ts->children->spotlight_url[0] != '\0' && c->dsn[0] == '\0') ||
			session_sampling_decides(&ts->session_sampling_key, i->pid, i->start_ticks,
						 c->session_sample_rate);
	switch (i->wish) {
	case INSTANCE_WISH_NONE:
	case INSTANCE_WISH_DETACHED:
		i->is_started = c->autostart;
		break;
	case INSTANCE_WISH_ATTACHED:
		i->is_sampled = true;
		c->lifecycle = LIFECYCLE_MANUAL;
		break;
	case INSTANCE_WISH_STARTED:
	case INSTANCE_WISH_STOPPED:
		break;
	}
	instance_forget_error(i);
	if (c->is_off && i->wish != INSTANCE_WISH_ATTACHED)
		leave_out(i, 0, c->defect);
}

int instance_add(struct targets *ts, struct process *p, size_t section)
{
	struct instance *i;
	int r = add_instance(ts, p, &i);

	if (r == -ENOSPC && !ts->warned_too_many)
		log_warning("more than %u processes match sections: process %d and those that "
			    "follow are not profiled; write rules that match fewer",
			    INSTANCES_MAX, p->pid);
	ts->warned_too_many |= r == -ENOSPC;
	if (r < 0)
		return r;
	configure(i, &ts->state->options.config.sections[section]);
	log_debug("process %d matches [target \"%s\"]%s", i->pid, i->config.name,
		  i->is_sampled ? "" : ", but profile_session_sample_rate excludes it");
	return 0;
}

/* The same for a process without a section. */
static void configure_named(struct instance *i)
{
	struct section_config implicit;

	config_implicit_section(&i->targets->state->options.config, "pid", &implicit);
	configure(i, &implicit);
}

int instance_add_given(struct targets *ts, int32_t pid)
{
	enum process_fault fault;
	struct process process;
	struct instance *i;
	int r;

	if (pid == getpid()) {
		log_error("process %d is this sentry-profd itself: it cannot be profiled", pid);
		return -EINVAL;
	}
	/* attach.c waits until the present tracer detaches. */
	fault = process_look(pid, &process);
	if (fault != PROCESS_TRACED) {
		r = refusal_log_look(fault, pid, &process);
		if (r < 0)
			return r;
	}
	r = add_instance(ts, &process, &i);
	close_fd(&process.pidfd);
	if (r < 0) {
		log_error("process %d cannot be profiled: %s", pid, strerror(-r));
		return r;
	}
	i->origin = INSTANCE_GIVEN;
	configure_named(i);
	return 0;
}

int instance_add_attached(struct targets *ts, struct process *p, enum instance_origin origin,
			  struct instance **ret)
{
	struct instance *i;
	int r = add_instance(ts, p, &i);

	if (r < 0)
		return r;
	i->origin = origin;
	configure_named(i);
	*ret = i;
	return 0;
}

void instance_add_child(struct targets *ts, int32_t pid)
{
	struct process process;
	enum process_fault fault;
	struct instance *i;
	int r = -ESRCH;

	if (ts->state->phase >= PHASE_STOPPING || instance_of_pid(ts, pid) != NULL)
		return;
	fault = process_look(pid, &process);
	/*
	 * Only if capture traces it, or if it is the child of a target: the pid may belong to
	 * another process by now.
	 */
	if (targets_trace(ts)
		    ? fault == PROCESS_TRACED && process.tracer == ts->children->capture.pid
		    : (fault == PROCESS_OK || fault == PROCESS_TRACED) &&
			      instance_of_pid(ts, process.parent) != NULL)
		r = instance_add_attached(ts, &process, INSTANCE_CHILD, &i);
	if (r == 0)
		i->followed_since_ticks = 0;
	close_fd(&process.pidfd);
	if (r < 0)
		log_debug("child %d is not profiled: %s", pid, strerror(-r));
}

/* The callback of threads_each_child(). ctx is the parent's instance. */
static void add_missed_child(void *ctx, int32_t pid)
{
	const struct instance *parent = ctx;
	struct targets *ts = parent->targets;
	struct process process;
	enum process_fault fault;
	struct instance *i;
	int r;

	if (instance_of_pid(ts, pid) != NULL)
		return;
	fault = process_look(pid, &process);
	if ((fault == PROCESS_OK || fault == PROCESS_TRACED) && process.parent == parent->pid &&
	    process.start_ticks >= parent->followed_since_ticks) {
		r = instance_add_attached(ts, &process, INSTANCE_CHILD, &i);
		if (r == 0)
			i->followed_since_ticks = i->start_ticks;
		log_debug("child %d was born without a tracer: %s", pid,
			  r < 0 ? strerror(-r) : "it is profiled");
	}
	close_fd(&process.pidfd);
}

void instance_add_missed_children(struct targets *ts, struct run *run)
{
	struct instance *i = run->instance;

	if (run->crash.tid != 0)
		return;
	if (i->followed_since_ticks == 0) {
		i->followed_since_ticks = i->start_ticks;
		/* The kernel attaches to children of a traced process; sampler = perf misses some.
		 */
		if (targets_trace(ts))
			return;
	}
	if (ts->state->phase < PHASE_STOPPING)
		threads_each_child(i->pid, add_missed_child, i);
}

void instances_add_missed_children(struct targets *ts)
{
	FOR_EACH_RUN (run, ts)
		if (run->was_attached)
			instance_add_missed_children(ts, run);
}

int instances_watch(struct targets *ts)
{
	int r = 0;

	for (size_t k = 0; k < ts->n_instances && r == 0; k++)
		if (ts->instances[k]->source == NULL)
			r = watch(ts->instances[k]);
	return r;
}

uint32_t instance_rate_hz(const struct instance *i)
{
	/* The timer's rate does not change while the daemon runs. */
	return (uint32_t)min_u64(i->config.rate_hz, i->targets->state->timer_hz);
}

/* A short text for the status; the log has a full line. */
static const char *attach_error_text(int error)
{
	switch (error) {
	case ENOEXEC:
		return "a 32-bit program cannot be profiled";
	case EPERM:
	case EACCES:
		return "not permitted to trace it";
	default:
		return strerror(error);
	}
}

/*
 * Ends a run that is over. A process that the command line names has one attempt, whose error
 * its user sees at once. For all others a shortage may be temporary.
 */
static void end_run(struct instance *i)
{
	struct run *run = i->run;

	if (run->left_out)
		leave_out(i, 0, "reading its memory hangs");
	else if (run->has_leak_check)
		leave_out(i, run->leak_program, REFUSAL_LEAK_CHECK);
	else if (resource_shortage_is(run->attach_error) && i->origin != INSTANCE_GIVEN)
		instance_delay_run(i);
	else if (run->attach_error != 0 && run->attach_error != ESRCH)
		leave_out(i, run->program_hash, attach_error_text(run->attach_error));
	i->run = NULL;
	/* It may have executed another program since it was refused. */
	instance_has_executed(i);
	if (i->origin == INSTANCE_GIVEN)
		i->closed_run = run;
	else
		attach_retire(run);
}

/*
 * Returns true if other processes of the instance's section have as many runs as max_instances
 * permits. Runs for recordings only do not count.
 */
static bool is_section_full(struct targets *ts, const struct instance *i)
{
	const uint32_t max = i->config.max_instances;
	uint32_t n = 0;

	if (!instance_has_section(i) || max == 0)
		return false;
	FOR_EACH_RUN (run, ts)
		n += run->instance != i && !run->is_for_recordings &&
		     instance_has_section(run->instance) &&
		     strcmp(run->instance->config.name, i->config.name) == 0;
	return n >= max;
}

/* Returns true if capture still has the process by an earlier instance of the same pid. */
static bool is_in_capture(struct targets *ts, const struct instance *i)
{
	FOR_EACH_RUN (run, ts)
		if (run->pid == i->pid && run->instance != i && !run_is_over(run))
			return true;
	return false;
}

/*
 * Retires the closed run of one process that the command line named, unless the exit status of
 * sentry-profd needs the run. Returns false if there is no such run. The run's place in the table
 * is free from the next turn on.
 */
static bool retire_closed(struct targets *ts)
{
	FOR_EACH_RUN (run, ts) {
		if (run != run->instance->closed_run || !run->instance->was_attached ||
		    run->attach_error != 0 || run->left_out || run->files_suspended_until_ns != 0)
			continue;
		attach_retire(run);
		return true;
	}
	return false;
}

/* Returns true if the daemon has as many runs as it may have. Logs that once until it has room. */
static bool is_full(struct targets *ts, const struct instance *i)
{
	const bool is = targets_count_runs(ts) == HEARTBEAT_SLOTS && !retire_closed(ts);

	if (is && !ts->warned_full)
		log_warning(
			"%d processes are profiled, the maximum: process %d (%s) and others wait "
			"until one of these ends",
			HEARTBEAT_SLOTS, i->pid, i->config.name);
	ts->warned_full = is;
	return is;
}

/* Returns true if the section or the daemon has as many runs as it may have. */
static bool is_limit_reached(struct targets *ts, const struct instance *i)
{
	return is_full(ts, i) || (i->n_recordings == 0 && is_section_full(ts, i));
}

/* Returns true if the process is profiled for Sentry or files now, not only for recordings. */
static bool is_wanted(const struct instance *i)
{
	return !server_limit_stops_sampling(i->ship) && lifecycle_wants(i);
}

/*
 * Returns true if a run of the process is for its recordings only. A whole run stays one. A run
 * that is one for recordings because of max_instances stays so until they end: else each place that
 * becomes free would interrupt them, and another process would take it meanwhile.
 */
static bool is_for_recordings(struct targets *ts, const struct instance *i)
{
	if (!is_wanted(i))
		return true;
	if (i->n_recordings == 0 || (i->run != NULL && !i->run->is_for_recordings))
		return false;
	return (i->run != NULL && i->obstacle == INSTANCE_LIMIT_REACHED) || is_section_full(ts, i);
}

/* Returns true if the CPU budget permits another run now. */
static bool is_admitted(struct targets *ts, struct instance *i)
{
	if (instance_is_for_user(i)) {
		if (governor_admits_user(ts, i))
			return true;
		i->obstacle = INSTANCE_OVER_BUDGET;
		return false;
	}
	return !instance_has_section(i) || i->was_attached ||
	       governor_admits(ts, i, clock_mono_ns());
}

static void start_run(struct targets *ts, struct instance *i)
{
	int r;

	if (clock_mono_ns() - i->failed_ns < i->run_delay_ns)
		return;
	i->obstacle = is_limit_reached(ts, i) ? INSTANCE_LIMIT_REACHED : INSTANCE_NO_OBSTACLE;
	if (i->obstacle != INSTANCE_NO_OBSTACLE || is_in_capture(ts, i))
		return;
	r = owners_begin(ts, i);
	if (r == -ESRCH)
		instance_becomes(i, INSTANCE_ENDED);
	if (r == -EAGAIN)
		i->obstacle = INSTANCE_RIGHTS_CHANGE;
	if (r < 0 || !is_admitted(ts, i))
		return;
	r = children_get_ship(ts->children, i->config.dsn, &i->ship);
	if (r == 0)
		i->ship->only_probed_ns = 0;
	/* The ship of a DSN that a reload has removed is still there. */
	if (r == -ENOSPC)
		i->obstacle = INSTANCE_LIMIT_REACHED;
	/* A later turn tries again: the next one, or one after the rate limit. */
	if (r < 0 || (server_limit_stops_sampling(i->ship) && i->n_recordings == 0))
		return;
	if (i->closed_run != NULL)
		attach_retire(i->closed_run);
	if (targets_open_run(ts, i, instance_rate_hz(i), is_for_recordings(ts, i)) == 0)
		attach_start(ts, i->run);
}

/* The run is over: takes the configuration as the last reload left it. */
static void configure_anew(struct instance *i)
{
	const struct section_config *section =
		config_section(&i->targets->state->options.config, i->config.name);

	if (!instance_has_section(i)) {
		configure_named(i);
	} else if (section != NULL) {
		configure(i, section);
	} else {
		instance_becomes(i, INSTANCE_REMOVED);
		return;
	}
	i->life = INSTANCE_LIVES;
}

/*
 * Ends the release of a process whose time is over, unless another process traces a thread of it.
 * A root span that has ended meanwhile needs no run: its transaction refers to none.
 */
static void check_release(const struct targets *ts, struct instance *i)
{
	const uint64_t now_ns = ts->state->clocks.mono();

	if (i->released_until_ns == 0 || now_ns < i->released_until_ns ||
	    now_ns < i->release_look_ns)
		return;
	i->release_look_ns = now_ns + RELEASE_LOOK_NS;
	if (threads_find_tracer(i->pid, 0) != 0)
		return;
	i->released_until_ns = 0;
	lifecycle_chunk_finished(i);
}

static void check_instance(struct targets *ts, struct instance *i)
{
	bool wanted, for_recordings;

	check_release(ts, i);
	instance_forgive(i);
	if (i->run != NULL && run_is_over(i->run))
		end_run(i);
	if (i->run == NULL && i->life == INSTANCE_CHANGED)
		configure_anew(i);
	/* No section matches the process, so nothing needs the instance any more. */
	if (i->run == NULL && i->wish == INSTANCE_WISH_DETACHED && instance_was_added(i))
		instance_becomes(i, INSTANCE_REMOVED);
	for_recordings = is_for_recordings(ts, i);
	wanted = i->life != INSTANCE_CHANGED && i->life != INSTANCE_REMOVED &&
		 !instance_is_let_go(i) && (i->n_recordings > 0 || !for_recordings);
	if (i->run != NULL && (!wanted || i->run->is_for_recordings != for_recordings ||
			       !run_clocks_agree(ts->state, i->run)))
		attach_stop(ts, i->run);
	else if (i->run == NULL && wanted && i->life == INSTANCE_LIVES &&
		 i->obstacle != INSTANCE_LEFT_OUT)
		start_run(ts, i);
	/* What is for Sentry and for files waits, although recordings have a run. */
	if (i->run != NULL && i->run->is_for_recordings && for_recordings && is_wanted(i))
		i->obstacle = INSTANCE_LIMIT_REACHED;
	else if (i->run != NULL && i->obstacle == INSTANCE_LIMIT_REACHED)
		i->obstacle = INSTANCE_NO_OBSTACLE;
	/* Or there is no run for another reason than a change of its rights. */
	if (!wanted || i->life != INSTANCE_LIVES ||
	    (i->obstacle != INSTANCE_NO_OBSTACLE && i->obstacle != INSTANCE_RIGHTS_CHANGE)) {
		instance_unsampled_ends(i);
		i->broken_off = (struct profile_start){0};
	}
	/* It waits for nothing. */
	if (!wanted &&
	    (i->obstacle == INSTANCE_LIMIT_REACHED || i->obstacle == INSTANCE_RIGHTS_CHANGE))
		i->obstacle = INSTANCE_NO_OBSTACLE;
}

void instances_check(struct targets *ts)
{
	if (!state_is_profiling(ts->state))
		return;
	for (size_t k = 0; k < ts->n_instances; k++)
		check_instance(ts, ts->instances[k]);
}

static bool is_over(const struct instance *i)
{
	return instance_is_gone(i) && i->origin != INSTANCE_GIVEN && i->run == NULL &&
	       i->delivery.n_envelopes == 0 && i->n_recordings == 0;
}

static void free_instance(struct targets *ts, struct instance *i)
{
	struct run_totals f;

	totals_of_instance(ts, i, &f);
	totals_add(&ts->gone, &f);
	if (ts->events.instance_gone != NULL)
		ts->events.instance_gone(ts->events.ctx, i);
	loop_remove(ts->state->loop, &i->source);
	close_fd(&i->pidfd);
	free(i);
}

void instances_sweep(struct targets *ts)
{
	size_t n = 0;

	/* The statistics at the end list each process that was there then. */
	if (!state_is_profiling(ts->state))
		return;
	for (size_t k = 0; k < ts->n_instances; k++) {
		struct instance *i = ts->instances[k];

		if (is_over(i))
			free_instance(ts, i);
		else
			ts->instances[n++] = i;
	}
	ts->n_instances = n;
}

static bool is_open(const struct instance *i)
{
	if (i->run != NULL && run_is_open(i->run))
		return true;
	return !instance_is_gone(i) && i->obstacle != INSTANCE_LEFT_OUT;
}

bool instances_any_open(const struct targets *ts)
{
	for (size_t k = 0; k < ts->n_instances; k++)
		if (is_open(ts->instances[k]))
			return true;
	return false;
}
