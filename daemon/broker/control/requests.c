#include "daemon/broker/control/requests.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/broker/control/attach_request.h"
#include "daemon/broker/control/clients.h"
#include "daemon/broker/control/control.h"
#include "daemon/broker/control/detach.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/recordings.h"
#include "daemon/broker/control/reload.h"
#include "daemon/broker/control/rights.h"
#include "daemon/broker/report/metrics.h"
#include "daemon/broker/report/modules.h"
#include "daemon/broker/report/status.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/common/log.h"
#include "daemon/config/config.h"
#include "daemon/process/peer.h"
#include "lib/base/clock.h"

/* Costs of requests, in small messages (user_quota.h). */
#define STATUS_WORK	 10
#define STATUS_WORK_EACH 2
#define RELOAD_WORK	 100

static enum protocol_result start_or_stop_instance(struct instance *i, uint32_t type)
{
	struct lifecycle_result result;

	if (instance_is_left_alone(i) || instance_is_let_go(i))
		return PROTOCOL_LEFT_OUT;
	result = type == PROTOCOL_START ? lifecycle_start(i) : lifecycle_stop(i);
	clients_log_result(i->pid, result);
	return result.answer;
}

/*
 * Writes the text of an answer: on how many processes of a section a start or stop had no
 * effect, and why.
 */
static void write_reasons(const uint32_t counts[PROTOCOL_FAILED + 1], struct protocol_answer *ret)
{
	static const struct {
		enum protocol_result result;
		const char *text;
	} reasons[] = {
		{PROTOCOL_RUNS_ALREADY, "profiled already"},
		{PROTOCOL_NOT_RUNNING, "not profiled"},
		{PROTOCOL_NOT_SAMPLED, "not sampled (profile_session_sample_rate)"},
		{PROTOCOL_TRACE_MODE, "left to their root spans (profile_lifecycle = trace)"},
		{PROTOCOL_LEFT_OUT, "left out (detached, or made the profiler hang)"},
	};
	size_t at = 0;

	for (size_t k = 0; k < array_size(reasons); k++) {
		const uint32_t n = counts[reasons[k].result];

		if (n != 0 && at < sizeof(ret->text))
			at += (size_t)snprintf(ret->text + at, sizeof(ret->text) - at, "%s%u %s",
					       at > 0 ? ", " : "", n, reasons[k].text);
	}
}

/*
 * Starts or stops all processes of a section that the peer has rights to. The result is
 * PROTOCOL_OK if there is at least one.
 */
static void start_or_stop_section(struct requests *requests, const struct peer *peer,
				  const struct protocol_request *m, struct control_answer *ret)
{
	uint32_t counts[PROTOCOL_FAILED + 1] = {0};
	size_t known = 0, allowed = 0;

	for (size_t k = 0; k < requests->modules->targets.n_instances; k++) {
		struct instance *i = requests->modules->targets.instances[k];

		if (instance_is_gone(i) || strcmp(i->config.name, m->name) != 0)
			continue;
		known++;
		if (!rights_may_control(peer, i))
			continue;
		allowed++;
		counts[start_or_stop_instance(i, m->h.type)]++;
	}
	ret->m.count = counts[PROTOCOL_OK];
	write_reasons(counts, &ret->m);
	ret->work += (uint32_t)known;
	if (known == 0)
		control_refuse(ret, PROTOCOL_NO_TARGET, "no process belongs to [target \"%s\"]",
			       m->name);
	else if (allowed == 0)
		ret->m.result = PROTOCOL_DENIED;
}

static void start_or_stop(struct requests *requests, const struct control_peer *peer,
			  const struct protocol_request *m, struct control_answer *ret)
{
	struct instance *i;

	if (m->name[0] != '\0') {
		start_or_stop_section(requests, &peer->identity, m, ret);
		return;
	}
	i = rights_find_instance(&requests->modules->targets, &peer->identity, m->pid, ret);
	if (i == NULL)
		return;
	ret->m.result = start_or_stop_instance(i, m->h.type);
	clients_answer(i, &ret->m);
}

static void answer_profiler_id(struct requests *requests, const struct control_peer *peer,
			       const struct protocol_request *m, struct control_answer *ret)
{
	struct instance *i =
		rights_find_instance(&requests->modules->targets, &peer->identity, m->pid, ret);

	if (i == NULL)
		return;
	clients_answer(i, &ret->m);
	ret->m.count = i->run != NULL && i->run->phase == RUN_PROFILED;
	if (ret->m.profiler_id[0] == '\0')
		ret->m.result = PROTOCOL_NOT_RUNNING;
}

/* Answers with the status or the metrics. */
static void answer_report(struct requests *requests, const struct control_peer *peer,
			  const struct protocol_request *m, struct control_answer *ret)
{
	int r = m->h.type == PROTOCOL_STATUS ? status_make(requests->modules, &peer->identity,
							   &ret->fd, &ret->m.fd_bytes)
					     : metrics_make(requests->modules, &peer->identity,
							    m->h.type == PROTOCOL_OPENMETRICS,
							    &ret->fd, &ret->m.fd_bytes);

	ret->work =
		STATUS_WORK + STATUS_WORK_EACH * (uint32_t)requests->modules->targets.n_instances;
	if (r < 0)
		control_refuse(ret, PROTOCOL_FAILED, "cannot make the %s: %s",
			       m->h.type == PROTOCOL_STATUS ? "status" : "metrics", strerror(-r));
}

/* Takes ownership of fd. If the file has lines, sends the file with the answer. */
static void attach_lines(int fd, struct control_answer *ret)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (size <= 0 || lseek(fd, 0, SEEK_SET) < 0) {
		close_fd(&fd);
		return;
	}
	ret->fd = fd;
	ret->m.fd_bytes = (uint32_t)size;
}

static void answer_reload(struct requests *requests, const struct control_peer *peer,
			  const struct protocol_request *m, struct control_answer *ret)
{
	int fd, r;

	(void)m;
	ret->work = RELOAD_WORK;
	if (!peer->identity.is_operator) {
		ret->m.result = PROTOCOL_DENIED;
		return;
	}
	/* If this fails, the lines are in the log only. */
	fd = memfd_create("reload", MFD_CLOEXEC);
	r = reload(requests->modules, requests->notify, fd);
	if (fd >= 0)
		attach_lines(fd, ret);
	if (r == -ENOTSUP)
		control_refuse(ret, PROTOCOL_FAILED,
			       "has no configuration to reload: it was started with --pid, "
			       "or is about to end");
	else if (r < 0)
		control_refuse(ret, PROTOCOL_FAILED,
			       "reload failed: the old configuration stays in use%s%s",
			       r == -EINVAL ? "" : ": ", r == -EINVAL ? "" : strerror(-r));
}

static void serve_own_process(struct requests *requests, struct control_peer *peer,
			      const struct protocol_request *m, struct control_answer *ret)
{
	struct client *c = peer->handler_data;
	int r = c == NULL ? client_new(&requests->clients, &peer->identity, &c, NULL) : 0;

	if (r < 0) {
		if (r == -EPERM)
			ret->m.result = PROTOCOL_DENIED;
		else
			control_refuse(ret, PROTOCOL_FAILED,
				       "cannot serve the process that asks: %s", strerror(-r));
		return;
	}
	peer->handler_data = c;
	ret->work = client_request(&requests->clients, c, m, &ret->m);
}

static void attach(struct requests *requests, const struct control_peer *peer,
		   const struct protocol_request *m, struct control_answer *ret)
{
	attach_request_handle(&requests->modules->targets, &peer->identity, m->pid, ret);
}

static void detach(struct requests *requests, const struct control_peer *peer,
		   const struct protocol_request *m, struct control_answer *ret)
{
	detach_request(&requests->modules->targets, peer, m, ret);
}

static void record(struct requests *requests, const struct control_peer *peer,
		   const struct protocol_request *m, struct control_answer *ret)
{
	recordings_request(&requests->recordings, peer, m, ret);
}

static void inspect(struct requests *requests, const struct control_peer *peer,
		    const struct protocol_request *m, struct control_answer *ret)
{
	inspect_request(&requests->inspector, peer, m, ret);
}

static void end_recordings(struct requests *requests, const struct control_peer *peer,
			   const struct protocol_request *m, struct control_answer *ret)
{
	(void)m;
	(void)ret;
	recordings_finish(&requests->recordings, peer);
}

/* Which requests are about the peer's own process. */
enum about_itself { NEVER, WITHOUT_PID_AND_NAME, ALWAYS };

static const struct served {
	enum about_itself about_itself;
	/* Serves a request about another process or the daemon. */
	void (*serve)(struct requests *requests, const struct control_peer *peer,
		      const struct protocol_request *m, struct control_answer *ret);
	/* For the log. NULL: the request changes nothing, or other code logs it. */
	const char *word;
} served_requests[PROTOCOL_TYPE_END] = {
	[PROTOCOL_START] = {WITHOUT_PID_AND_NAME, start_or_stop, "start"},
	[PROTOCOL_STOP] = {WITHOUT_PID_AND_NAME, start_or_stop, "stop"},
	[PROTOCOL_PROFILER_ID] = {WITHOUT_PID_AND_NAME, answer_profiler_id, NULL},
	[PROTOCOL_SPANS_OPEN] = {ALWAYS, NULL, NULL},
	[PROTOCOL_SPANS_CLOSED] = {ALWAYS, NULL, NULL},
	[PROTOCOL_THREAD] = {ALWAYS, NULL, NULL},
	[PROTOCOL_ATTACH] = {NEVER, attach, NULL},
	[PROTOCOL_DETACH] = {NEVER, detach, "detach"},
	[PROTOCOL_STATUS] = {NEVER, answer_report, NULL},
	[PROTOCOL_METRICS] = {NEVER, answer_report, NULL},
	[PROTOCOL_OPENMETRICS] = {NEVER, answer_report, NULL},
	[PROTOCOL_RELOAD] = {NEVER, answer_reload, NULL},
	[PROTOCOL_RECORD] = {NEVER, record, "recording"},
	[PROTOCOL_WATCH] = {NEVER, record, "recording"},
	[PROTOCOL_RECORD_END] = {NEVER, end_recordings, NULL},
	[PROTOCOL_CHECK] = {NEVER, inspect, NULL},
	[PROTOCOL_RELEASE] = {NEVER, detach, "release"},
};

/* Logs a request that changes something, with the user and process that made it. */
static void log_request(const struct peer *peer, const struct protocol_request *m, const char *word)
{
	if (m->pid != 0 || m->h.type == PROTOCOL_RELEASE)
		log_debug("%s of process %d, by uid %u (pid %d)", word,
			  m->pid != 0 ? m->pid : peer->pid, peer->uid, peer->pid);
	else
		log_debug("%s of [target \"%s\"], by uid %u (pid %d)", word, m->name, peer->uid,
			  peer->pid);
}

/* A request: control_message.h has checked that its type is in the table. */
static void on_request(void *ctx, struct control_peer *peer, const struct protocol_request *m,
		       struct control_answer *ret)
{
	const struct served *r = &served_requests[m->h.type];

	if (r->about_itself == ALWAYS ||
	    (r->about_itself == WITHOUT_PID_AND_NAME && m->pid == 0 && m->name[0] == '\0')) {
		serve_own_process(ctx, peer, m, ret);
		return;
	}
	if (r->serve == NULL) {
		control_refuse(ret, PROTOCOL_FAILED, "the daemon does not serve this request");
		return;
	}
	r->serve(ctx, peer, m, ret);
	if (r->word != NULL && ret->m.result == PROTOCOL_OK)
		log_request(&peer->identity, m, r->word);
}

/* Only detach() defers an answer. */
static void on_again(void *ctx, struct control_peer *peer, const struct protocol_request *m,
		     uint64_t waited_ns, struct control_answer *ret)
{
	struct requests *requests = ctx;

	detach_go_on(&requests->modules->targets, peer, m, waited_ns, ret);
}

static int on_page(void *ctx, struct control_peer *peer, int *ret_fd)
{
	struct client *c;
	struct requests *requests = ctx;
	int r = client_new(&requests->clients, &peer->identity, &c, ret_fd);

	if (r == 0)
		peer->handler_data = c;
	return r;
}

static void on_gone(void *ctx, struct control_peer *peer)
{
	struct requests *requests = ctx;

	client_end(peer->handler_data);
	recordings_gone(&requests->recordings, peer);
}

static const struct control_handler handler = {
	.request = on_request,
	.again = on_again,
	.page = on_page,
	.gone = on_gone,
};

static const char *listen_error_text(int error)
{
	switch (error) {
	case EADDRINUSE:
		return "another sentry-profd listens there";
	case EEXIST:
		return "the file there is not a socket";
	case EPERM:
		return "other users own the directory or may write to it: they "
		       "could replace the socket";
	case ENAMETOOLONG:
		return "the name of a socket has at most 107 bytes";
	default:
		return strerror(error);
	}
}

int requests_open(struct requests *requests)
{
	const char *path = requests->modules->state.options.config.socket;
	int r;

	if (path[0] == '\0' && requests->modules->discovery == NULL)
		return 0;
	if (path[0] == '\0')
		path = CONFIG_SOCKET_DEFAULT;
	r = control_new(path, &handler, requests, geteuid(), &requests->control);
	if (r < 0)
		log_error("cannot listen at %s: %s", path, listen_error_text(-r));
	return r;
}

int requests_start(struct requests *requests)
{
	return requests->control == NULL
		       ? 0
		       : control_start(requests->control, requests->modules->state.loop);
}

void requests_check(struct requests *requests)
{
	if (requests->control != NULL)
		control_check(requests->control, clock_mono_ns());
}

void requests_close(struct requests *requests)
{
	control_free(requests->control);
	requests->control = NULL;
}
