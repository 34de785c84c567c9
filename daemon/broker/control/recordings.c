#include "daemon/broker/control/recordings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/children/child.h"
#include "daemon/broker/control/attach_request.h"
#include "daemon/broker/control/reader.h"
#include "daemon/broker/control/rights.h"
#include "daemon/broker/control/user_quota.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/common/random.h"
#include "daemon/config/config.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/process/peer.h"
#include "daemon/process/process.h"

#define RECORD_CHUNK_US (CONFIG_CHUNK_MAX_SECONDS * UINT64_C(1000000))
#define WATCH_CHUNK_US	UINT64_C(1000000)

/*
 * The maximum number of recordings that have ended while the peer keeps the socket open and does
 * not read the last messages: of one user, and of all users who are no operators. The daemon
 * refuses a new recording beyond it.
 */
#define UNREAD_USER_MAX 8
#define UNREAD_MAX	256

/* The cost of a request, in small messages (user_quota.h): it makes a socket that the peer keeps.
 */
#define WORK 20

struct recording {
	struct recording *next;
	struct instance *instance; /* not valid if is_over */
	/* The peer that requested the recording; NULL: the peer has disconnected. */
	const struct control_peer *peer;
	uint32_t user;		/* user_quota_uid() of the peer */
	bool is_operators;	/* an operator requested the recording */
	uint64_t owner_changes; /* of the instance, at the time of the request */
	bool is_denied;		/* the peer has lost the right to record this process */
	struct reader reader;
	const char *note; /* instance_budget_text() as the peer was told last */
	uint32_t number;
	uint64_t chunk_us;
	char profiler_id[MSG_ID_SIZE];
	/*
	 * The run whose unwind process was asked to record, and the pid of that process. target
	 * is 0 if no process was asked.
	 */
	uint32_t target;
	int32_t unwind_pid;
	bool is_finishing; /* the peer wants no more chunks */
	bool end_is_asked; /* MSG_RECORDING_CLOSE was sent to the unwind process */
	/*
	 * PROTOCOL_RECORD_GOES_ON; or the reason why the recording ends, if the peer does not have
	 * that message yet.
	 */
	enum protocol_record_end end;
	/*
	 * The recording has ended: recordings_sweep() frees it when nothing waits for the peer
	 * (reader_waiting()).
	 */
	bool is_over;
};

/* Returns the current recording of the run with this number, or NULL. */
static struct recording *find_recording(const struct recordings *rs, const struct run *run,
					uint32_t number)
{
	for (struct recording *r = rs->first; r != NULL; r = r->next)
		if (!r->is_over && r->number == number && r->target == run->id)
			return r;
	return NULL;
}

/* Sends the reason of the end. If the peer has not read all chunks, a later turn tries again. */
static void send_end(struct recording *r)
{
	struct instance *i = r->instance;
	const char *text = "";

	if (r->end == PROTOCOL_RECORD_LEFT_OUT)
		text = r->is_denied ? "has other rights now" : instance_obstacle_text(i);
	if (reader_end(&r->reader, r->end, text) == -EAGAIN)
		return;
	reader_stop(&r->reader);
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
	/* An operator may record each process. */
	return r->peer != NULL && !r->peer->identity.is_operator &&
	       r->instance->owner_changes != r->owner_changes;
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
		ret->work++;
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
	error = reader_open(&r->reader, rs->targets->state->loop, ret_fd);
	if (error < 0) {
		free(r);
		return error;
	}
	r->instance = i;
	r->peer = peer;
	r->owner_changes = i->owner_changes;
	r->user = user_quota_uid(&peer->identity);
	r->number = ++rs->last_number;
	r->chunk_us = chunk_us;
	random_id(r->profiler_id);
	i->n_recordings++;
	r->is_operators = peer->identity.is_operator;
	i->n_operator_recordings += r->is_operators;
	append_recording(rs, r);
	return 0;
}

/* Returns the bytes of memory that one more chunk for the user may have. */
static uint64_t room_of(const struct recordings *rs, uint32_t user)
{
	uint64_t used = 0;

	for (const struct recording *r = rs->first; r != NULL; r = r->next)
		if (r->user == user)
			used += reader_waiting(&r->reader);
	return used < PROTOCOL_CHUNK_MAX ? PROTOCOL_CHUNK_MAX - used : 0;
}

/* Returns true if the user, or all users, have left too many recordings unread. */
static bool has_left_unread(const struct recordings *rs, uint32_t user)
{
	size_t own = 0, all = 0;

	for (const struct recording *r = rs->first; r != NULL; r = r->next) {
		own += r->is_over && r->user == user;
		all += r->is_over && r->user != USER_QUOTA_OPERATORS;
	}
	return own >= UNREAD_USER_MAX || (user != USER_QUOTA_OPERATORS && all >= UNREAD_MAX);
}

void recordings_request(struct recordings *rs, const struct control_peer *peer,
			const struct protocol_request *m, struct control_answer *ret)
{
	const bool is_watch = m->h.type == PROTOCOL_WATCH;
	struct instance *i;
	int32_t pid = m->pid;
	int r;

	ret->work = WORK;
	if (peer->version < PROTOCOL_RECORD_VERSION) {
		control_refuse(ret, PROTOCOL_BAD_VERSION,
			       "sentry-profd is newer than this program, and makes recordings for "
			       "programs of its version only: update this program");
		return;
	}
	if (has_left_unread(rs, user_quota_uid(&peer->identity))) {
		control_refuse(ret, PROTOCOL_BUSY,
			       "programs of this user keep too many recordings open without "
			       "reading them to their ends: end one of these programs");
		return;
	}
	if (m->name[0] != '\0') {
		i = find_named(rs, &peer->identity, m->name, ret);
		if (i == NULL)
			return;
		pid = i->pid;
	}
	i = attach_request_for_recording(rs->targets, &peer->identity, pid, ret);
	if (i == NULL)
		return;
	if (i->n_recordings == MSG_RECORDINGS_MAX) {
		control_refuse(ret, PROTOCOL_BUSY,
			       "the process already has %d recordings, the maximum: try again when "
			       "one has ended",
			       MSG_RECORDINGS_MAX);
		return;
	}
	r = add_recording(rs, i, peer, is_watch ? WATCH_CHUNK_US : RECORD_CHUNK_US, &ret->fd);
	ret->m.pid = i->pid;
	if (rs->targets->state->options.config.mode == MODE_CPU)
		(void)snprintf(
			ret->m.text, sizeof(ret->m.text),
			"mode = cpu in the daemon's configuration: threads that wait have no "
			"stacks");
	if (r < 0)
		control_refuse(ret, PROTOCOL_FAILED, "cannot be recorded: %s", strerror(-r));
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
		reader_stop(&r->reader);
	}
}

int recordings_chunk(const struct recordings *rs, const struct run *run, uint32_t number,
		     uint64_t size, int fd)
{
	struct recording *r = find_recording(rs, run, number);

	if (!delivery_is_payload(fd, size))
		return -EPROTO;
	if (r == NULL)
		return 0;
	if (r->instance->run != NULL)
		(void)!owners_check(rs->targets, r->instance->run);
	if (has_lost_right(r))
		r->reader.lost++;
	else
		reader_add(&r->reader, fd, (uint32_t)size, room_of(rs, r->user),
			   state_now_ns(rs->targets->state));
	return 0;
}

void recordings_lost(const struct recordings *rs, const struct run *run, uint32_t number)
{
	struct recording *r = find_recording(rs, run, number);

	if (r != NULL)
		r->reader.lost++;
}

void recordings_closed(const struct recordings *rs, const struct run *run, uint32_t number)
{
	struct recording *r = find_recording(rs, run, number);

	if (r != NULL)
		r->target = 0;
}

/* Returns true if the session that was asked to record still exists and may send chunks. */
static bool session_is_there(const struct recording *r)
{
	const struct run *run = r->instance->run;

	return r->target != 0 && run != NULL && run->id == r->target &&
	       run->session == SESSION_OPEN && run->phase != RUN_CLOSED &&
	       run->unwind->child.pid == r->unwind_pid;
}

static void end_in_unwind(struct recording *r)
{
	const struct msg_recording m = {
		.h = MSG_HEADER(MSG_RECORDING_CLOSE),
		.target = r->target,
		.recording = r->number,
	};

	child_send(&r->instance->run->unwind->child, &m, sizeof(m), NULL, 0);
	r->end_is_asked = true;
}

static void start_in_unwind(struct recording *r, struct run *run)
{
	struct msg_recording_open m = {
		.h = MSG_HEADER(MSG_RECORDING_OPEN),
		.target = run->id,
		.recording = r->number,
		.chunk_us = r->chunk_us,
	};

	memcpy(m.profiler_id, r->profiler_id, sizeof(m.profiler_id));
	child_send(&run->unwind->child, &m, sizeof(m), NULL, 0);
	r->target = run->id;
	r->unwind_pid = run->unwind->child.pid;
}

static void check_recording(const struct recordings *rs, struct recording *r)
{
	const struct instance *i = r->instance;
	struct run *run = i->run;

	if (has_lost_right(r)) {
		r->is_denied = true;
		if (session_is_there(r) && !r->end_is_asked)
			end_in_unwind(r);
		/* The peer gets no more chunks from now on, and not the rest of one. */
		reader_drop(&r->reader);
		end_recording(r, PROTOCOL_RECORD_LEFT_OUT);
		return;
	}
	/* A peer that has closed the socket wants no more chunks. */
	r->is_finishing |= r->reader.is_stopped;
	if (session_is_there(r)) {
		if (r->is_finishing && !r->end_is_asked)
			end_in_unwind(r);
		return;
	}
	/* The unwind process has died, and the open chunk is lost. */
	r->reader.lost += r->target != 0;
	r->target = 0;
	if (r->is_finishing)
		end_recording(r, PROTOCOL_RECORD_DONE);
	else if (i->life == INSTANCE_ENDED && run != NULL && !run_is_over(run))
		return; /* the run still makes its last chunk */
	else if (i->life == INSTANCE_ENDED)
		end_recording(r, PROTOCOL_RECORD_NO_PROCESS);
	else if (rs->targets->state->phase >= PHASE_STOPPING)
		end_recording(r, PROTOCOL_RECORD_SHUTDOWN);
	else if (instance_is_left_alone(i) || i->life == INSTANCE_REMOVED)
		end_recording(r, PROTOCOL_RECORD_LEFT_OUT);
	else if (run != NULL && run_is_open(run) && run->session == SESSION_OPEN)
		start_in_unwind(r, run);
}

/*
 * Sends the peer a note that the CPU budget permits no samples, and why, or that samples are taken
 * again.
 */
static void send_note(struct recording *r)
{
	const char *note = instance_budget_text(r->instance);

	if (note == r->note)
		return;
	/* If the socket is full, a later turn tries again. */
	if (reader_note(&r->reader, note == NULL ? "sampled again" : note) == 0)
		r->note = note;
}

void recordings_check(struct recordings *rs)
{
	const uint64_t now_ns = state_now_ns(rs->targets->state);

	for (struct recording *r = rs->first; r != NULL; r = r->next) {
		reader_check(&r->reader, now_ns);
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

		if (!r->is_over || reader_waiting(&r->reader) > 0) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		reader_close(&r->reader);
		free(r);
	}
}
