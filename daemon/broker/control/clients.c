#include "daemon/broker/control/clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/control/client_page.h"
#include "daemon/broker/control/rights.h"
#include "daemon/broker/control/namespaced_tid.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/common/log.h"
#include "daemon/config/config.h"
#include "daemon/process/process.h"
#include "lib/base/clock.h"

/* About once a second: lib/client/protocol.h. */
#define BEAT_NS NS_PER_SEC

/* PROTOCOL_THREAD lists the threads, and then reads the files of some: a unit for each. */
#define THREAD_WORK 10

struct client {
	struct client *next;
	struct peer peer;
	struct instance *instance; /* NULL: none, or not known yet */
	struct client_page page;
	bool is_gone;	 /* the connection has ended */
	bool is_sought;	 /* find_instance() was called for this client */
	bool has_page;	 /* the client reads and writes its page */
	bool said_open;	 /* a client without a page has sent SPANS_OPEN last */
	bool is_counted; /* root_spans of the instance counts the client's span */
	/*
	 * The number of STARTs and STOPs that wait for an instance, and of those that were handled.
	 */
	uint32_t waiting, handled;
	enum protocol_type last_waiting; /* the last START or STOP that waits */
};

int client_new(struct clients *cs, const struct peer *peer, struct client **ret, int *ret_fd)
{
	struct client *c;
	int r, fd;

	if (peer->pid == 0 || peer->start_ticks == 0)
		return -ESRCH;
	if (!peer_speaks(peer))
		return -EPERM;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	r = client_page_init(&c->page, &fd);
	if (r < 0) {
		free(c);
		return r;
	}
	c->has_page = ret_fd != NULL;
	if (c->has_page)
		*ret_fd = fd;
	else
		close_fd(&fd);
	c->peer = *peer;
	c->page.shared->pid = (uint32_t)peer->pid;
	c->page.shared->is_other_ns = namespaced_tid_is_other(peer->pid);
	c->next = cs->first;
	cs->first = c;
	clients_check(cs);
	*ret = c;
	return 0;
}

void clients_log_result(int32_t pid, struct lifecycle_result result)
{
	if (result.answer != PROTOCOL_OK)
		log_debug("process %d: %s", pid, result.why_not);
}

static void count_span(struct client *c, bool is_open)
{
	if (c->instance == NULL || c->is_counted == is_open)
		return;
	c->is_counted = is_open;
	clients_log_result(c->peer.pid, lifecycle_span(c->instance, is_open));
}

static void leave_instance(struct client *c)
{
	count_span(c, false);
	c->instance = NULL;
}

void client_end(struct client *c)
{
	if (c == NULL)
		return;
	leave_instance(c);
	c->is_gone = true;
}

void clients_sweep(struct clients *cs)
{
	struct client **at = &cs->first;

	while (*at != NULL) {
		struct client *c = *at;

		if (!c->is_gone) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		client_page_fini(&c->page);
		free(c);
	}
}

void clients_forget(struct clients *cs, const struct instance *i)
{
	for (struct client *c = cs->first; c != NULL; c = c->next)
		if (c->instance == i)
			leave_instance(c);
}

void clients_answer(const struct instance *i, struct protocol_answer *ret)
{
	ret->pid = i->pid;
	ret->state = lifecycle_state(i);
	if (ret->state == PROTOCOL_STATE_PROFILING)
		(void)snprintf(ret->profiler_id, sizeof(ret->profiler_id), "%s",
			       lifecycle_profiler_id(i));
	else if ((ret->state == PROTOCOL_STATE_LEFT_OUT || ret->state == PROTOCOL_STATE_WAITING) &&
		 ret->text[0] == '\0')
		(void)snprintf(ret->text, sizeof(ret->text), "%s", instance_obstacle_text(i));
}

static void update_page(const struct clients *cs, struct client *c)
{
	const struct instance *i = c->instance;
	struct protocol_page now = {.state = lifecycle_state(i)};

	/* The last chunks are being made, and no profiler starts any more. */
	if (cs->targets->state->phase >= PHASE_STOPPING)
		now.state = PROTOCOL_STATE_NONE;
	if (i != NULL) {
		now.lifecycle =
			i->config.lifecycle == LIFECYCLE_TRACE ? PROTOCOL_TRACE : PROTOCOL_MANUAL;
		now.is_sampled = i->is_sampled;
		now.thread_id = i->config.thread_id_format == THREAD_ID_PTHREAD ? PROTOCOL_PTHREAD
										: PROTOCOL_TID;
	}
	(void)snprintf(now.profiler_id, sizeof(now.profiler_id), "%s", lifecycle_profiler_id(i));
	client_page_show(&c->page, &now);
	client_page_handled(&c->page, c->handled);
}

static struct lifecycle_result carry_out(struct client *c, enum protocol_type type)
{
	struct lifecycle_result result =
		type == PROTOCOL_START ? lifecycle_start(c->instance) : lifecycle_stop(c->instance);

	clients_log_result(c->peer.pid, result);
	c->handled += 1 + c->waiting;
	c->waiting = 0;
	return result;
}

/*
 * Finds the client's instance, which has the same pid and start time, if the connection speaks for
 * the process. Carries out the last START or STOP that waited for the instance. An instance that
 * was added for recordings does not count: the client's requests wait until a section matches the
 * process.
 */
static void find_instance(struct clients *cs, struct client *c)
{
	struct instance *i = instance_of_pid(cs->targets, c->peer.pid);

	c->is_sought = true;
	if (i == NULL || i->origin == INSTANCE_RECORDED || !rights_is_itself(&c->peer, i))
		return;
	c->instance = i;
	if (c->waiting > 0) {
		c->waiting--;
		(void)carry_out(c, c->last_waiting);
	}
}

/* Counts the begin of a root span only if the process runs the program that connected. */
static void see_spans(struct client *c, bool is_open)
{
	if (is_open != c->is_counted && (!is_open || peer_speaks(&c->peer)))
		count_span(c, is_open);
}

static void check_client(struct clients *cs, struct client *c, bool is_due)
{
	if (c->instance != NULL &&
	    (instance_is_gone(c->instance) || (is_due && !peer_speaks(&c->peer))))
		leave_instance(c);
	if (c->instance == NULL && is_due)
		find_instance(cs, c);
	if (c->instance == NULL)
		return;
	if (client_page_had_spans(&c->page))
		lifecycle_span_seen(c->instance);
	see_spans(c, c->has_page ? client_page_has_open_spans(&c->page) : c->said_open);
}

/*
 * Sets wants_open before it reads spans_open: if a span opens in between, the client sends a
 * message, or this function finds the span.
 */
static void ask_for_span_messages(struct client *c)
{
	const struct instance *i = c->instance;
	const bool waits = i != NULL && i->is_sampled && i->config.lifecycle == LIFECYCLE_TRACE &&
			   !lifecycle_wants(i);

	client_page_want(&c->page, waits);
	if (waits && client_page_has_open_spans(&c->page))
		see_spans(c, true);
}

static void check_silence(struct clients *cs, uint64_t now_ns)
{
	const uint64_t chunk_ns = cs->targets->state->options.config.chunk_seconds * NS_PER_SEC;

	for (size_t k = 0; k < cs->targets->n_instances; k++) {
		struct instance *i = cs->targets->instances[k];

		if (instance_is_gone(i) || !lifecycle_check(i, now_ns, chunk_ns))
			continue;
		log_warning("process %d (%s): profile_lifecycle is trace, but the process has "
			    "reported no root span for %d s: only a process that uses "
			    "libsentry_profd, with "
			    "its tracing on, is profiled",
			    i->pid, i->config.name, (int)(LIFECYCLE_NO_SPAN_NS / NS_PER_SEC));
	}
}

void clients_check(struct clients *cs)
{
	const uint64_t now_ns = clock_mono_ns();
	const bool beats = now_ns >= cs->beat_ns + BEAT_NS;
	const bool is_new = cs->targets->n_instances != cs->n_seen;

	cs->n_seen = cs->targets->n_instances;
	if (beats) {
		cs->beat_ns = now_ns;
		check_silence(cs, now_ns);
	}
	for (struct client *c = cs->first; c != NULL; c = c->next) {
		if (c->is_gone)
			continue;
		check_client(cs, c, beats || is_new || !c->is_sought);
		ask_for_span_messages(c);
		update_page(cs, c);
		if (beats)
			client_page_beat(&c->page);
	}
}

static void on_start_or_stop(struct client *c, enum protocol_type type,
			     struct protocol_answer *answer)
{
	struct lifecycle_result result;

	if (c->instance == NULL) {
		c->last_waiting = type;
		c->waiting++;
		return;
	}
	result = carry_out(c, type);
	answer->result = result.answer;
	(void)snprintf(answer->text, sizeof(answer->text), "%s", result.why_not);
}

/*
 * Finds the thread whose number in the client's pid namespace is own. Returns 0 or -errno. Returns
 * -ESRCH, too, if the client has ended and another process has its pid now: the start times of the
 * two processes differ.
 */
static int find_thread(const struct client *c, int32_t own, int32_t *ret, size_t *ret_looks)
{
	struct process_identity now;
	int32_t found;
	int r = namespaced_tid_find(c->peer.pid, own, &found, ret_looks);

	if (r == 0 &&
	    (!process_identity(c->peer.pid, &now) || now.start_ticks != c->peer.start_ticks))
		r = -ESRCH;
	if (r == 0)
		*ret = found;
	return r;
}

/*
 * Counts an open root span that the client has reported, even if the page says that the span has
 * ended meanwhile: the transaction of the span refers to a profile.
 */
static void on_spans(struct client *c, bool is_open)
{
	c->said_open = is_open;
	if (is_open)
		count_span(c, true);
}

uint32_t client_request(struct clients *cs, struct client *c,
			const struct protocol_request *request, struct protocol_answer *answer)
{
	const enum protocol_type type = request->h.type;
	size_t looks = 0;

	answer->pid = c->peer.pid;
	if (!peer_speaks(&c->peer)) {
		answer->result = PROTOCOL_DENIED;
		return 1;
	}
	if (c->instance == NULL)
		find_instance(cs, c);
	if (type == PROTOCOL_START || type == PROTOCOL_STOP)
		on_start_or_stop(c, type, answer);
	else if (type == PROTOCOL_SPANS_OPEN || type == PROTOCOL_SPANS_CLOSED)
		on_spans(c, type == PROTOCOL_SPANS_OPEN);
	else if (type == PROTOCOL_THREAD && find_thread(c, request->pid, &answer->pid, &looks) < 0)
		answer->result = PROTOCOL_NO_PROCESS;
	check_client(cs, c, false);
	update_page(cs, c);
	answer->state = c->page.shown.state;
	if (answer->state == PROTOCOL_STATE_PROFILING)
		memcpy(answer->profiler_id, c->page.shown.profiler_id, sizeof(answer->profiler_id));
	return type == PROTOCOL_THREAD ? THREAD_WORK + (uint32_t)looks : 1;
}
