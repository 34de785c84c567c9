#include "daemon/broker/control/control.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "daemon/broker/control/control_message.h"
#include "daemon/broker/control/control_socket.h"
#include "daemon/broker/control/user_quota.h"
#include "daemon/common/drain.h"
#include "daemon/common/log.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/config/subuid.h"
#include "lib/base/ipc.h"

/* Limits for one turn of the loop, so that other events are handled, too. */
#define ACCEPTED_AT_ONCE 16
#define HEARD_AT_ONCE	 32

struct connection {
	struct connection *next;
	struct control *control;
	int fd;
	/*
	 * NULL: the broker reads the connection again when the peer's quota has grown, or when
	 * a deferred answer was sent.
	 */
	struct loop_source *source;
	bool is_greeted;
	bool has_ended; /* control_check() frees the connection */
	struct control_peer peer;
	uint32_t quota_uid;		  /* the peer's user, or USER_QUOTA_OPERATORS */
	bool is_deferred;		  /* the next three are set */
	struct protocol_request deferred; /* the request that was deferred */
	uint64_t deferred_ns;		  /* the time when it was deferred, CLOCK_MONOTONIC */
	uint64_t note;			  /* of control_answer */
};

struct control {
	struct control_socket socket;
	const struct control_handler *handler;
	void *ctx;
	struct loop *loop;
	struct loop_source *source; /* NULL: control_start() was not called */
	uint32_t own_uid;
	struct peer_groups groups;
	bool is_full; /* the log says that users' connections are refused */
	struct subuid subuid;
	struct user_quotas quotas;
	uint64_t now_ns; /* the time of the last control_check() */
	struct connection *connections;
};

void control_refuse(struct control_answer *ret, enum protocol_result result, const char *format,
		    ...)
{
	va_list args;

	ret->m.result = result;
	va_start(args, format);
	(void)vsnprintf(ret->m.text, sizeof(ret->m.text), format, args);
	va_end(args);
}

static void end_connection(struct connection *c)
{
	struct control *control = c->control;

	if (c->is_greeted)
		control->handler->gone(control->ctx, &c->peer);
	loop_remove(control->loop, &c->source);
	drain_close(&c->fd, control->socket.refuses_fds);
	user_quota_close(&control->quotas, c->quota_uid);
	c->has_ended = true;
}

static void free_ended(struct control *control)
{
	struct connection **at = &control->connections;

	while (*at != NULL) {
		struct connection *c = *at;

		if (!c->has_ended) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		free(c);
	}
}

/*
 * Sends an answer, unless the tag is 0. Returns false if the peer does not read or has
 * disconnected.
 */
static bool send_answer(struct connection *c, const struct protocol_header *to,
			struct control_answer *a)
{
	int r = 0;

	if (to->tag != 0) {
		a->m.h = (struct protocol_header){
			.type = PROTOCOL_ANSWER,
			.size = sizeof(a->m),
			.tag = to->tag,
		};
		a->m.version = c->peer.version;
		r = ipc_send(c->fd, &a->m, sizeof(a->m), &a->fd, a->fd >= 0);
	}
	close_fd(&a->fd);
	return r == 0;
}

static bool answer_hello(struct connection *c, const struct protocol_hello *m)
{
	struct control *control = c->control;
	struct control_answer a = {.fd = -1};

	c->peer.version = (uint32_t)min_u64(m->version, PROTOCOL_VERSION);
	c->is_greeted = true;
	if ((m->flags & PROTOCOL_WANT_PAGE) &&
	    control->handler->page(control->ctx, &c->peer, &a.fd) < 0)
		a.m.result = PROTOCOL_FAILED;
	return send_answer(c, &m->h, &a);
}

static bool serve_request(struct connection *c, const struct protocol_request *m)
{
	struct control *control = c->control;
	struct control_answer a = {.fd = -1, .work = 1};

	control->handler->request(control->ctx, &c->peer, m, &a);
	user_quota_use(&control->quotas, c->quota_uid, a.work, control->now_ns);
	if (!a.is_deferred)
		return send_answer(c, &m->h, &a);
	loop_remove(control->loop, &c->source);
	c->is_deferred = true;
	c->deferred = *m;
	c->deferred_ns = control->now_ns;
	c->note = a.note;
	return true;
}

static void go_on_with_deferred(struct connection *c)
{
	struct control *control = c->control;
	struct control_answer a = {.fd = -1, .work = 1, .note = c->note};

	control->handler->again(control->ctx, &c->peer, &c->deferred,
				control->now_ns - c->deferred_ns, &a);
	c->note = a.note;
	if (a.is_deferred)
		return;
	c->is_deferred = false;
	user_quota_use(&control->quotas, c->quota_uid, a.work, control->now_ns);
	if (!send_answer(c, &c->deferred.h, &a))
		end_connection(c);
}

/* Handles one message. Returns false if the connection has to end. */
static bool handle_message(struct connection *c, const void *bytes, size_t size)
{
	struct control_answer newer = {.m.result = PROTOCOL_BAD_VERSION, .fd = -1};
	union control_message m;

	switch (control_message_check(bytes, size, !c->is_greeted, &m)) {
	case CONTROL_BAD:
		log_debug("process %d has sent an invalid message: its connection "
			  "is closed",
			  c->peer.identity.pid);
		return false;
	case CONTROL_HELLO:
		return answer_hello(c, &m.hello);
	case CONTROL_REQUEST:
		return serve_request(c, &m.request);
	case CONTROL_NEWER:
		user_quota_use(&c->control->quotas, c->quota_uid, 1, c->control->now_ns);
		return send_answer(c, &m.h, &newer);
	}
	return false;
}

static void on_readable(void *ctx)
{
	struct connection *c = ctx;
	struct control *control = c->control;
	/* One byte more, to detect messages that are too long. */
	uint8_t bytes[PROTOCOL_SIZE_MAX + 1];

	for (int i = 0; i < HEARD_AT_ONCE; i++) {
		ssize_t n;

		if (!user_quota_may_request(&control->quotas, c->quota_uid, control->now_ns)) {
			loop_remove(control->loop, &c->source);
			return;
		}
		n = drain_recv(c->fd, control->socket.refuses_fds, bytes, sizeof(bytes));
		if (n == -EAGAIN)
			return;
		if (n <= 0 || !handle_message(c, bytes, (size_t)n)) {
			end_connection(c);
			return;
		}
		if (c->is_deferred)
			return;
	}
}

static size_t connections_of(const struct control *c, int32_t pid)
{
	size_t n = 0;

	for (const struct connection *i = c->connections; i; i = i->next)
		n += !i->has_ended && i->peer.identity.pid == pid;
	return n;
}

/*
 * Logs that the daemon refuses a connection. If the user or the process has too many connections,
 * that is the user's own affair, and the line is at debug level. If all users together have too
 * many, the line is a warning, once until there is room.
 */
static void log_refused(struct control *control, const struct peer *peer)
{
	const bool is_full = !peer->is_operator && user_quota_is_full(&control->quotas);

	if (is_full && !control->is_full)
		log_warning("users have too many connections to the socket: until some are closed, "
			    "only operators get new ones (refused: process %d, uid %u)",
			    peer->pid, peer->uid);
	else
		log_debug("process %d (uid %u): its connection to the socket is refused: too many "
			  "connections",
			  peer->pid, peer->uid);
	control->is_full |= is_full;
}

/* Takes ownership of fd. Closes the connection if the peer may not connect. */
static void add_connection(struct control *control, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct peer *peer;

	if (c == NULL || peer_of(fd, control->own_uid, &control->groups, &c->peer.identity) < 0)
		goto out;
	peer = &c->peer.identity;
	peer->user = peer->is_operator ? peer->uid : subuid_owner(&control->subuid, peer->uid);
	c->quota_uid = user_quota_uid(peer);
	if (!user_quota_open(&control->quotas, c->quota_uid, connections_of(control, peer->pid))) {
		log_refused(control, peer);
		goto out;
	}
	if (!peer->is_operator)
		control->is_full = false;
	c->control = control;
	c->fd = fd;
	if (loop_add(control->loop, fd, on_readable, c, &c->source) < 0) {
		user_quota_close(&control->quotas, c->quota_uid);
		goto out;
	}
	/* So that connecting and disconnecting without a message is limited, too. */
	user_quota_use(&control->quotas, c->quota_uid, 1, control->now_ns);
	c->next = control->connections;
	control->connections = c;
	return;
out:
	free(c);
	drain_close(&fd, control->socket.refuses_fds);
}

static void on_connect(void *ctx)
{
	struct control *c = ctx;

	for (int i = 0; i < ACCEPTED_AT_ONCE; i++) {
		/* cppcheck-suppress nullPointer ; without an address, accept4 takes NULL */
		int fd = accept4(c->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			add_connection(c, fd);
			continue;
		}
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		resource_shortage_note(errno, "a connection to the daemon's socket");
		loop_pause(c->loop, c->source);
		return;
	}
}

int control_new(const char *path, const struct control_handler *handler, void *ctx,
		uint32_t own_uid, struct control **ret)
{
	struct control *c = calloc(1, sizeof(*c));
	struct rlimit files = {0};
	int r;

	if (c == NULL)
		return -ENOMEM;
	/* The daemon of an ordinary user serves that user only. */
	r = control_socket_open(path, own_uid == 0, &c->socket);
	if (r < 0) {
		free(c);
		return r;
	}
	(void)getrlimit(RLIMIT_NOFILE, &files);
	user_quota_init(&c->quotas, files.rlim_cur);
	c->handler = handler;
	c->ctx = ctx;
	c->own_uid = own_uid;
	peer_groups(&c->groups);
	subuid_init(&c->subuid, SUBUID_FILE, SUBUID_LOGIN_DEFS);
	*ret = c;
	return 0;
}

int control_start(struct control *c, struct loop *l)
{
	c->loop = l;
	return loop_add(l, c->socket.fd, on_connect, c, &c->source);
}

void control_free(struct control *c)
{
	if (c == NULL)
		return;
	for (struct connection *i = c->connections; i != NULL; i = i->next)
		if (!i->has_ended)
			end_connection(i);
	free_ended(c);
	if (c->loop != NULL)
		loop_remove(c->loop, &c->source);
	control_socket_close(&c->socket);
	subuid_fini(&c->subuid);
	free(c);
}

void control_check(struct control *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (c->loop == NULL)
		return;
	for (struct connection *i = c->connections; i != NULL; i = i->next)
		if (!i->has_ended && i->is_deferred)
			go_on_with_deferred(i);
	/* The loop reads these connections in its next turn. */
	for (struct connection *i = c->connections; i != NULL; i = i->next)
		if (!i->has_ended && i->source == NULL && !i->is_deferred &&
		    user_quota_may_request(&c->quotas, i->quota_uid, now_ns) &&
		    loop_add(c->loop, i->fd, on_readable, i, &i->source) < 0)
			end_connection(i);
	free_ended(c);
}
