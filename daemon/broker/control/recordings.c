#include "daemon/broker/control/recordings.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/control/adopt.h"
#include "daemon/broker/control/rights.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/common/random.h"
#include "daemon/config/config.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/peer.h"
#include "daemon/process/process.h"
#include "lib/base/ipc.h"

#define RECORD_CHUNK_US (CONFIG_CHUNK_MAX_SECONDS * UINT64_C(1000000))
#define WATCH_CHUNK_US	UINT64_C(1000000)

/*
 * Bytes of the socket's buffer. The kernel raises it to its minimum, which holds some messages.
 * Each message may hold a payload in memory.
 */
#define BUFFER_SIZE 1

struct recording {
	struct recording *next;
	struct instance *instance;
	/* The peer that requested it; NULL: it has disconnected. */
	const struct control_peer *peer;
	bool is_operators; /* an operator requested it */
	bool is_denied;	   /* the peer has lost the right to record this process */
	int fd;		   /* the broker's end of the recording's socket; -1: closed */
	uint32_t number;
	uint64_t chunk_us;
	char profiler_id[MSG_ID_SIZE];
	uint32_t lost;	  /* chunks that the peer did not get */
	const char *note; /* instance_budget_text() as the peer was told last */
	/* The target and unwind process that were asked to record; target 0: none. */
	uint32_t target;
	int32_t unwind_pid;
	bool is_finishing; /* the peer wants no more chunks */
	bool end_is_asked; /* MSG_RECORDING_CLOSE was sent to the unwind process */
	/* PROTOCOL_RECORD_GOES_ON; or the reason of its end, which is still to be sent. */
	enum protocol_record_end end;
	bool is_over; /* recordings_sweep() frees it */
};

/* Returns the current recording of target t with this number, or NULL. */
static struct recording *find_recording(const struct recordings *rs, const struct target *t,
					uint32_t number)
{
	for (struct recording *r = rs->first; r != NULL; r = r->next)
		if (!r->is_over && r->number == number && r->target == t->id)
			return r;
	return NULL;
}

/*
 * Sends a message to the peer. Returns 0; -EAGAIN if the socket is full because the peer does not
 * read; -EPIPE if the peer has disconnected.
 */
static int send_recorded(struct recording *r, struct protocol_recorded *m, int fd)
{
	if (r->fd < 0)
		return -EPIPE;
	m->lost = r->lost;
	return ipc_send(r->fd, m, sizeof(*m), &fd, fd >= 0);
}

/* Sends the reason of the end. If the socket is full, a later turn tries again. */
static void send_end(struct recording *r)
{
	struct protocol_recorded m = {.end = r->end};
	struct instance *i = r->instance;

	if (r->end == PROTOCOL_RECORD_LEFT_OUT)
		(void)snprintf(m.text, sizeof(m.text), "%s",
			       r->is_denied ? "runs as another user now" : i->last_error);
	if (send_recorded(r, &m, -1) == -EAGAIN)
		return;
	close_fd(&r->fd);
	r->is_over = true;
	i->n_recordings--;
	i->n_operator_recordings -= r->is_operators;
	if (i->n_recordings == 0 && i->origin == INSTANCE_RECORDED)
		instance_becomes(i, INSTANCE_REMOVED);
}

/*
 * Returns true if the peer has lost the right to record the process, because the credentials of the
 * process have changed, for example by executing a set-user-ID program. Returns false if the
 * process has ended: its last chunks belong to the peer's user.
 */
static bool has_lost_right(const struct recording *r)
{
	const struct instance *i = r->instance;
	uint32_t owner;

	/* An operator may record each process. */
	if (r->peer == NULL || r->peer->identity.is_operator)
		return false;
	owner = process_owner(i->pid);
	return owner != UINT32_MAX && owner != i->uid;
}

static void end_recording(struct recording *r, enum protocol_record_end why)
{
	r->end = why;
	send_end(r);
}

/* Returns the only process of a section that the peer may record. NULL: *ret has the reason. */
static struct instance *find_named(struct recordings *rs, const struct peer *peer, const char *name,
				   struct control_answer *ret)
{
	struct instance *found = NULL;
	size_t n = 0, n_denied = 0;

	for (size_t k = 0; k < rs->targets->n_instances; k++) {
		struct instance *i = rs->targets->instances[k];

		if (instance_is_gone(i) || strcmp(i->config.name, name) != 0)
			continue;
		if (!rights_may_control(peer, i)) {
			n_denied++;
			continue;
		}
		found = i;
		n++;
	}
	if (n == 1)
		return found;
	if (n == 0 && n_denied > 0)
		ret->m.result = PROTOCOL_DENIED;
	else
		control_refuse(ret, PROTOCOL_NO_TARGET,
			       n == 0 ? "no process belongs to [target \"%s\"]"
				      : "[target \"%s\"] has several "
					"processes: name one by its pid",
			       name);
	return NULL;
}

static int open_socket(struct recording *r, int *ret_fd)
{
	const int size = BUFFER_SIZE;
	int fds[2], error = ipc_pair(fds);

	if (error < 0)
		return error;
	/* The peer must not send anything, descriptors included. */
	if (shutdown(fds[0], SHUT_RD) < 0 ||
	    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) < 0 ||
	    fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0) {
		error = -errno;
		close_fd(&fds[0]);
		close_fd(&fds[1]);
		return error;
	}
	r->fd = fds[0];
	*ret_fd = fds[1];
	return 0;
}

static void append_recording(struct recordings *rs, struct recording *r)
{
	struct recording **end = &rs->first;

	while (*end != NULL)
		end = &(*end)->next;
	*end = r;
}

static int add_recording(struct recordings *rs, struct instance *i, const struct control_peer *peer,
			 uint64_t chunk_us, int *ret_fd)
{
	struct recording *r = calloc(1, sizeof(*r));
	int error;

	if (r == NULL)
		return -ENOMEM;
	error = open_socket(r, ret_fd);
	if (error < 0) {
		free(r);
		return error;
	}
	r->instance = i;
	r->peer = peer;
	r->number = ++rs->last_number;
	r->chunk_us = chunk_us;
	random_id(r->profiler_id);
	i->n_recordings++;
	r->is_operators = peer->identity.is_operator;
	i->n_operator_recordings += r->is_operators;
	append_recording(rs, r);
	return 0;
}

void recordings_request(struct recordings *rs, const struct control_peer *peer,
			const struct protocol_request *m, struct control_answer *ret)
{
	const bool is_watch = m->h.type == PROTOCOL_WATCH;
	struct instance *i;
	int32_t pid = m->pid;
	int r;

	if (m->name[0] != '\0') {
		i = find_named(rs, &peer->identity, m->name, ret);
		if (i == NULL)
			return;
		pid = i->pid;
	}
	i = adopt_for_recording(rs->targets, &peer->identity, pid, ret);
	if (i == NULL)
		return;
	if (i->n_recordings == MSG_RECORDINGS_MAX) {
		control_refuse(ret, PROTOCOL_BUSY, "the process already has %d recordings",
			       MSG_RECORDINGS_MAX);
		return;
	}
	r = add_recording(rs, i, peer, is_watch ? WATCH_CHUNK_US : RECORD_CHUNK_US, &ret->fd);
	ret->m.pid = i->pid;
	if (r < 0)
		control_refuse(ret, PROTOCOL_FAILED, "%s", strerror(-r));
	if (r < 0 && i->n_recordings == 0 && i->origin == INSTANCE_RECORDED)
		instance_becomes(i, INSTANCE_REMOVED);
}

void recordings_finish(struct recordings *rs, const struct control_peer *peer)
{
	for (struct recording *r = rs->first; r != NULL; r = r->next)
		if (r->peer == peer)
			r->is_finishing = true;
}

void recordings_gone(struct recordings *rs, const struct control_peer *peer)
{
	for (struct recording *r = rs->first; r != NULL; r = r->next) {
		if (r->peer != peer)
			continue;
		r->peer = NULL;
		r->is_finishing = true;
		close_fd(&r->fd);
	}
}

int recordings_chunk(const struct recordings *rs, const struct target *t, uint32_t number,
		     uint64_t size, int fd)
{
	struct protocol_recorded m = {.bytes = (uint32_t)size};
	struct recording *r = find_recording(rs, t, number);

	if (!delivery_is_payload(fd, size))
		return -EPROTO;
	if (r != NULL && (has_lost_right(r) || send_recorded(r, &m, fd) < 0))
		r->lost++;
	return 0;
}

void recordings_lost(const struct recordings *rs, const struct target *t, uint32_t number)
{
	struct recording *r = find_recording(rs, t, number);

	if (r != NULL)
		r->lost++;
}

void recordings_closed(const struct recordings *rs, const struct target *t, uint32_t number)
{
	struct recording *r = find_recording(rs, t, number);

	if (r != NULL)
		r->target = 0;
}

/* Returns true if the session that was asked to record still exists and may send chunks. */
static bool session_is_there(const struct recording *r)
{
	const struct target *t = r->instance->target;

	return r->target != 0 && t != NULL && t->id == r->target && t->session == SESSION_OPEN &&
	       t->phase != TARGET_CLOSED && t->unwind->child.pid == r->unwind_pid;
}

static void end_in_unwind(struct recording *r)
{
	const struct msg_recording m = {
		.h = MSG_HEADER(MSG_RECORDING_CLOSE),
		.target = r->target,
		.recording = r->number,
	};

	child_send(&r->instance->target->unwind->child, &m, sizeof(m), NULL, 0);
	r->end_is_asked = true;
}

static void start_in_unwind(struct recording *r, struct target *t)
{
	struct msg_recording_open m = {
		.h = MSG_HEADER(MSG_RECORDING_OPEN),
		.target = t->id,
		.recording = r->number,
		.chunk_us = r->chunk_us,
	};

	memcpy(m.profiler_id, r->profiler_id, sizeof(m.profiler_id));
	child_send(&t->unwind->child, &m, sizeof(m), NULL, 0);
	r->target = t->id;
	r->unwind_pid = t->unwind->child.pid;
}

static void check_recording(const struct recordings *rs, struct recording *r)
{
	const struct instance *i = r->instance;
	struct target *t = i->target;

	if (has_lost_right(r)) {
		r->is_denied = true;
		if (session_is_there(r) && !r->end_is_asked)
			end_in_unwind(r);
		/* The peer gets no more chunks from now on. */
		end_recording(r, PROTOCOL_RECORD_LEFT_OUT);
		return;
	}
	if (session_is_there(r)) {
		if (r->is_finishing && !r->end_is_asked)
			end_in_unwind(r);
		return;
	}
	/* The unwind process has died, and the open chunk is lost. */
	r->lost += r->target != 0;
	r->target = 0;
	if (r->is_finishing)
		end_recording(r, PROTOCOL_RECORD_DONE);
	else if (i->life == INSTANCE_ENDED && t != NULL && !target_is_over(t))
		return; /* the target still makes its last chunk */
	else if (i->life == INSTANCE_ENDED)
		end_recording(r, PROTOCOL_RECORD_NO_PROCESS);
	else if (rs->targets->state->phase >= PHASE_STOPPING)
		end_recording(r, PROTOCOL_RECORD_SHUTDOWN);
	else if (instance_is_left_alone(i) || i->life == INSTANCE_REMOVED)
		end_recording(r, PROTOCOL_RECORD_LEFT_OUT);
	else if (t != NULL && target_is_open(t) && t->session == SESSION_OPEN)
		start_in_unwind(r, t);
}

/* Tells the peer that no samples are taken, and why, or that they are taken again. */
static void send_note(struct recording *r)
{
	const char *note = instance_budget_text(r->instance);
	struct protocol_recorded m = {.end = PROTOCOL_RECORD_GOES_ON};

	if (note == r->note)
		return;
	(void)snprintf(m.text, sizeof(m.text), "%s", note == NULL ? "sampled again" : note);
	/* If the socket is full, a later turn tries again. */
	if (send_recorded(r, &m, -1) == 0)
		r->note = note;
}

void recordings_check(struct recordings *rs)
{
	for (struct recording *r = rs->first; r != NULL; r = r->next) {
		if (r->is_over)
			continue;
		if (r->end == PROTOCOL_RECORD_GOES_ON)
			check_recording(rs, r);
		else
			send_end(r);
		if (r->end == PROTOCOL_RECORD_GOES_ON)
			send_note(r);
	}
}

void recordings_sweep(struct recordings *rs)
{
	struct recording **at = &rs->first;

	while (*at != NULL) {
		struct recording *r = *at;

		if (!r->is_over) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		free(r);
	}
}
