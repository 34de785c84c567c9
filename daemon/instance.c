#include "daemon/instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/broker.h"
#include "daemon/clients.h"
#include "daemon/id.h"
#include "daemon/lifecycle.h"
#include "daemon/limit.h"
#include "daemon/log.h"
#include "daemon/process.h"
#include "daemon/refusal.h"
#include "lib/base/clock.h"

/* A loop_fn of a pidfd: the process has ended. */
static void on_end(void *ctx)
{
	struct instance *i = ctx;

	i->has_ended = true;
	loop_remove(i->broker->loop, &i->source);
}

static int watch(struct instance *i)
{
	return loop_add(i->broker->loop, i->pidfd, on_end, i, &i->source);
}

static int make_room(struct broker *b)
{
	const size_t size = max_u64(16, 2 * b->instances_size);
	struct instance **list;

	if (b->n_instances == INSTANCES_MAX)
		return -ENOSPC;
	if (b->n_instances < b->instances_size)
		return 0;
	list = reallocarray(b->instances, size, sizeof(struct instance *));
	if (list == NULL)
		return -ENOMEM;
	b->instances = list;
	b->instances_size = size;
	return 0;
}

/* p's pidfd is the instance's, on success. */
static int add(struct broker *b, const struct process *p, struct instance **ret)
{
	struct instance *i;
	int r = make_room(b);

	if (r < 0)
		return r;
	i = calloc(1, sizeof(*i));
	if (i == NULL)
		return -ENOMEM;
	i->broker = b;
	i->pid = p->pid;
	i->start_ticks = p->start_ticks;
	i->pidfd = p->pidfd;
	i->uid = p->uid;
	id_make(i->next_profiler_id);
	b->instances[b->n_instances++] = i;
	*ret = i;
	return 0;
}

/* By its section, as if it was found just now; what it was told holds. */
static void configure(const struct broker *b, struct instance *i)
{
	struct target_config *c = &i->config;

	*c = b->options.config.targets[i->section];
	/* The timer was set when the daemon was started. */
	if (c->rate_hz > b->timer_hz)
		c->rate_hz = b->timer_hz;
	i->is_sampled =
		session_is_sampled(&b->session_key, i->pid, i->start_ticks,
				   c->session_sample_rate);
	if (!i->is_told)
		i->is_started = c->autostart;
	if (i->is_taken) {
		i->is_sampled = true;
		c->lifecycle = LIFECYCLE_MANUAL;
	}
	i->is_left_out = false;
}

int instance_add(struct broker *b, const struct process *p, size_t section)
{
	struct instance *i;
	int r = add(b, p, &i);

	if (r == -ENOSPC && !b->instances_told)
		log_warning("more than %u processes match: process %d and "
			    "those that follow are not profiled",
			    INSTANCES_MAX, p->pid);
	b->instances_told |= r == -ENOSPC;
	if (r < 0)
		return r;
	i->section = section;
	configure(b, i);
	r = watch(i);
	if (r < 0) {
		b->n_instances--;
		free(i);
		return r;
	}
	log_debug("process %d is one of target %s%s", i->pid, i->config.name,
		  i->is_sampled ? "" : ": its session is not sampled");
	return 0;
}

/* Somebody has named it: it is profiled, whatever sections say. */
static void want(struct instance *i)
{
	config_implicit_target(&i->broker->options.config, "pid", &i->config);
	i->is_sampled = true;
	i->is_started = true;
}

int instance_add_given(struct broker *b, int32_t pid)
{
	enum process_fault fault;
	struct process process;
	struct instance *i;
	int r;

	if (pid == getpid()) {
		log_error("process %d is this sentry-profd itself", pid);
		return -EINVAL;
	}
	/* Who traces it now is waited for (attach.c). */
	fault = process_look(pid, &process);
	if (fault != PROCESS_TRACED) {
		r = refusal_of_look(fault, pid, &process);
		if (r < 0)
			return r;
	}
	r = add(b, &process, &i);
	if (r < 0) {
		log_error("process %d: %s", pid, strerror(-r));
		close_fd(&process.pidfd);
		return r;
	}
	want(i);
	i->is_given = true;
	return 0;
}

int instance_add_attached(struct broker *b, const struct process *p,
			  struct instance **ret)
{
	struct instance *i;
	int r = add(b, p, &i);

	if (r < 0)
		return r;
	r = watch(i);
	if (r < 0) {
		b->n_instances--;
		free(i);
		return r;
	}
	want(i);
	i->is_attached = true;
	*ret = i;
	return 0;
}

int instances_watch(struct broker *b)
{
	int r = 0;

	for (size_t k = 0; k < b->n_instances && r == 0; k++)
		if (b->instances[k]->source == NULL)
			r = watch(b->instances[k]);
	return r;
}

struct instance *instance_of_pid(struct broker *b, int32_t pid)
{
	for (size_t k = 0; k < b->n_instances; k++) {
		struct instance *i = b->instances[k];

		if (i->pid == pid && !i->has_ended && !i->is_removed)
			return i;
	}
	return NULL;
}

void instance_remove(struct instance *i)
{
	i->is_removed = true;
}

void instance_change(struct instance *i)
{
	i->is_changed = true;
}

void instance_cut_short(struct instance *i)
{
	const uint64_t now_ns = clock_mono_ns();

	if (!process_is_alive(i->pidfd))
		return;
	if (now_ns - i->cut_ns >= INSTANCE_CUT_FORGOTTEN_NS)
		i->cuts = 0;
	i->cut_ns = now_ns;
	i->wait_ns = 0;
	if (i->cuts > 0)
		i->wait_ns = min_u64(INSTANCE_CUT_WAIT_NS
					     << min_u64(i->cuts - 1, 16),
				     INSTANCE_CUT_MAX_NS);
	if (++i->cuts != INSTANCE_CUTS_TOLD)
		return;
	(void)snprintf(i->last_error, sizeof(i->last_error),
		       "unwind ends its profile again and again");
	log_error("sentry-profd-unwind ends the profile of process %d again "
		  "and again: it is started anew every %u s at last",
		  i->pid, (unsigned int)(INSTANCE_CUT_MAX_NS / NS_PER_SEC));
}

static void leave_out(struct instance *i, const char *why)
{
	i->is_left_out = true;
	(void)snprintf(i->last_error, sizeof(i->last_error), "%s", why);
}

/* In a few words, for the status; the log has a line. */
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

/* Its run is over. */
static void settle(struct broker *b, struct instance *i)
{
	struct target *t = i->target;

	if (t->left_out || (t->attach_error != 0 && t->attach_error != ESRCH))
		leave_out(i, t->left_out ? "reads of its memory hang"
					 : attach_error_text(t->attach_error));
	i->target = NULL;
	if (i->is_given)
		i->kept = t;
	else
		target_retire(b, t);
}

/* How many are profiled. */
struct crowd {
	uint32_t all;
	uint32_t of_section[CONFIG_TARGETS_MAX];
};

static void crowd_add(struct crowd *crowd, const struct instance *i)
{
	crowd->all++;
	if (instance_has_section(i))
		crowd->of_section[i->section]++;
}

/* As another instance it was profiled until now: capture has it still. */
static bool is_occupied(const struct broker *b, const struct instance *i)
{
	for (size_t k = 0; k < b->n_instances; k++) {
		const struct instance *other = b->instances[k];

		if (other != i && other->pid == i->pid && other->target != NULL)
			return true;
	}
	return false;
}

/* No more of its section are to be profiled at a time, or of all. */
static bool is_crowded_out(const struct instance *i, const struct crowd *crowd)
{
	const uint32_t max = i->config.max_instances;

	if (crowd->all == HEARTBEAT_SLOTS)
		return true;
	return instance_has_section(i) && max != 0 &&
	       crowd->of_section[i->section] >= max;
}

static void start(struct broker *b, struct instance *i, struct crowd *crowd)
{
	if (!process_is_alive(i->pidfd)) {
		i->has_ended = true;
		return;
	}
	if (clock_mono_ns() - i->cut_ns < i->wait_ns)
		return;
	i->is_crowded_out = is_crowded_out(i, crowd);
	if (i->is_crowded_out || is_occupied(b, i))
		return;
	if (i->kept != NULL)
		target_retire(b, i->kept);
	if (children_ship(b, i->config.dsn, &i->ship) < 0) {
		leave_out(i, "there is no process for its DSN");
		return;
	}
	if (target_open(b, i) < 0)
		return;
	crowd_add(crowd, i);
	target_start(b, i->target);
}

static void check(struct broker *b, struct instance *i, struct crowd *crowd)
{
	bool wanted;

	if (i->target != NULL && target_is_over(i->target))
		settle(b, i);
	if (i->target == NULL && i->is_changed) {
		configure(b, i);
		i->is_changed = false;
	}
	wanted = !i->is_removed && !i->is_changed && !i->is_detached &&
		 !limit_holds(i) && lifecycle_wants(i);
	if (i->target != NULL && (!wanted || !target_clocks_hold(b, i->target)))
		target_stop(b, i->target);
	else if (i->target == NULL && wanted && !i->has_ended &&
		 !i->is_left_out)
		start(b, i, crowd);
}

static void forget(struct broker *b, struct instance *i)
{
	figures_add(&b->gone, &i->past);
	clients_forget(b, i);
	loop_remove(b->loop, &i->source);
	close_fd(&i->pidfd);
	free(i);
}

static bool is_forgotten(const struct instance *i)
{
	return (i->has_ended || i->is_removed) && !i->is_given &&
	       i->target == NULL && i->n_envelopes == 0;
}

void instances_check(struct broker *b)
{
	static struct crowd crowd;
	size_t n = 0;

	if (b->stopping || b->pausing)
		return;
	memset(&crowd, 0, sizeof(crowd));
	for (size_t k = 0; k < b->n_instances; k++)
		if (b->instances[k]->target != NULL)
			crowd_add(&crowd, b->instances[k]);
	for (size_t k = 0; k < b->n_instances; k++) {
		struct instance *i = b->instances[k];

		check(b, i, &crowd);
		if (is_forgotten(i))
			forget(b, i);
		else
			b->instances[n++] = i;
	}
	b->n_instances = n;
}

static bool is_open(const struct instance *i)
{
	if (i->target != NULL && target_is_open(i->target))
		return true;
	return !i->has_ended && !i->is_left_out && !i->is_removed;
}

bool instances_any_open(const struct broker *b)
{
	for (size_t k = 0; k < b->n_instances; k++)
		if (is_open(b->instances[k]))
			return true;
	return false;
}
