#include "daemon/broker/inbox.h"

#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"
#include "daemon/broker/children/server_limit.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/recordings.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/held_execs.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/broker/targets/lifecycle.h"
#include "daemon/broker/targets/owners.h"
#include "daemon/common/log.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/file_request.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_io.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/clock.h"

static struct broker *broker_of(const struct child *child)
{
	return child->children->events.ctx;
}

/* Returns the unwind process whose ring has this id, or NULL. */
static struct unwind *unwind_of_ring(const struct children *c, uint32_t ring)
{
	for (size_t i = 0; i < c->n_unwinds; i++)
		if (c->unwinds[i]->id == ring)
			return c->unwinds[i];
	return NULL;
}

static int on_ring_made(void *ctx, struct ipc_message *message)
{
	const struct msg_id *made = (const void *)message->bytes;
	const struct msg_id m = {
		.h = MSG_HEADER(MSG_RING_OPEN),
		.id = made->id,
	};
	struct broker *b = ctx;
	struct unwind *u = unwind_of_ring(&b->modules.children, made->id);

	if (u == NULL) {
		child_fail(&b->modules.children.capture, "announces a ring that was not requested");
		return 0;
	}
	/* The ring was made for an unwind process that has died; a newer ring will come. */
	if (u->rings_awaited > 0)
		u->rings_awaited--;
	if (u->rings_awaited > 0 || u->link_fd < 0)
		return 0;
	child_send(&u->child, &m, sizeof(m), (int[]){message->fds[0], u->link_fd}, 2);
	close_fd(&u->link_fd);
	return 0;
}

static int on_ring_broken(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct broker *b = ctx;
	struct unwind *u = unwind_of_ring(&b->modules.children, m->id);

	/* Otherwise the ring is that of an earlier process, which has died meanwhile. */
	if (u != NULL && u->rings_awaited == 0 && !u->ring_due)
		child_fail(&u->child, "breaks the rules of the ring of samples");
	return 0;
}

static int on_target_state(void *ctx, struct ipc_message *m)
{
	const struct msg_target_state *state = (const void *)m->bytes;
	struct broker *b = ctx;
	struct run *run = targets_run(&b->modules.targets, state->target);

	if (run != NULL && state->state == TARGET_ATTACHED && b->modules.state.options.children)
		instance_add_missed_children(&b->modules.targets, run);
	attach_on_state(&b->modules.targets, state);
	return 0;
}

/* MSG_CAPTURE_DONE: allowed only after MSG_CAPTURE_STOP. */
static int on_capture_done(void *ctx, struct ipc_message *m)
{
	struct broker *b = ctx;

	(void)m;
	if (state_is_sampling(&b->modules.state))
		return -EPROTO;
	b->modules.children.capture_done = b->modules.state.phase >= PHASE_DELIVERING;
	return 0;
}

static int on_child_born(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct broker *b = ctx;

	if (!b->modules.state.options.children || m->id > INT32_MAX)
		return -EPROTO;
	if (m->id == 0)
		instances_add_missed_children(&b->modules.targets);
	else
		instance_add_child(&b->modules.targets, (int32_t)m->id);
	return 0;
}

static void send_file(void *ctx, const struct msg_file_request *request, int error, int fd,
		      const struct file_label *file)
{
	struct child *child = ctx;
	struct broker *b = broker_of(child);
	struct run *run = targets_run(&b->modules.targets, request->target);
	struct msg_file_reply m = {
		.h = MSG_HEADER(MSG_FILE_REPLY),
		.request = request->request,
	};

	if (error == 0)
		error = quarantine_check_file(&b->modules.quarantine,
					      &((struct unwind *)child)->key, request, file,
					      &m.number);
	m.error = -error;
	child_send(child, &m, sizeof(m), &fd, error == 0 ? 1 : 0);
	close_fd(&fd);
	if (error == -ETIMEDOUT && run != NULL)
		run_files_hang(run, state_now_ns(&b->modules.state));
}

/*
 * Returns the run that a message of an unwind process is about. NULL: the run has ended while
 * the message was under way, so the caller ignores the message; or the process has broken a rule,
 * because it names a run of another process, or an id above those of the runs that it had.
 * Ids are not used again.
 */
static struct run *own_run(struct child *child, uint32_t id)
{
	const struct unwind *u = (const struct unwind *)child;
	struct run *run = targets_run(&broker_of(child)->modules.targets, id);

	if (run != NULL && run->unwind == u)
		return run;
	if (run != NULL || id == 0 || id > u->newest_run)
		child_fail(child, "names a target that is not its own");
	return NULL;
}

/* unwind applies the same rule before it asks, so a refused request is a fault of unwind. */
static void warn_file_refused(struct broker *b, struct run *run,
			      const struct msg_file_request *request)
{
	b->modules.quarantine.refused++;
	if (run->warned_file_refused)
		return;
	run->warned_file_refused = true;
	log_warning("sentry-profd-unwind has asked for a file of process %d by an invalid name or "
		    "address range (kind %u): the file is not opened; please report this",
		    run->pid, request->kind);
}

/* How long files of a process are opened after its run was told to close. */
#define CLOSING_NS (5 * NS_PER_SEC)

/*
 * Returns true for a file that the last chunk of a run that closes needs for its names: a file
 * by range or name. Its memory and its maps belong to a process that is not profiled any more.
 */
static bool is_for_last_chunk(const struct run *run, uint32_t kind)
{
	return run->phase != RUN_CLOSED && clock_mono_ns() - run->closing_ns < CLOSING_NS &&
	       (kind == FILE_KIND_IMAGE || kind == FILE_KIND_DEBUG ||
		kind == FILE_KIND_DEBUG_LINK || kind == FILE_KIND_PERF_MAP);
}

/* The environment is part of FILE_KIND_PROGRAM. */
static bool may_have_environ(const struct run *run, uint32_t kind)
{
	return kind != FILE_KIND_PROGRAM || instance_trusts_environ(run->instance);
}

static int on_file_request(void *ctx, struct ipc_message *message)
{
	const struct msg_file_request *request = (const void *)message->bytes;
	struct child *child = ctx;
	struct broker *b = broker_of(child);
	struct run *run = own_run(child, request->target);
	int r;

	/* unwind waits for the answer. A child that was killed gets none. */
	if (run == NULL) {
		send_file(child, request, -ESRCH, -1, NULL);
		return 0;
	}
	switch (file_request_check(request)) {
	case FILE_REQUEST_VALID:
		break;
	case FILE_REQUEST_REFUSED:
		warn_file_refused(b, run, request);
		send_file(child, request, -EINVAL, -1, NULL);
		return 0;
	case FILE_REQUEST_VIOLATION:
		child_fail(child, "requests an unknown kind of file");
		return 0;
	}
	if (run_files_suspended(run, state_now_ns(&b->modules.state))) {
		send_file(child, request, -EIO, -1, NULL);
		return 0;
	}
	r = owners_check(&b->modules.targets, run);
	if (r == -EACCES)
		files_count_other_owner(b->modules.files);
	/* The helper compares the owner, too. */
	if (resource_shortage_is(-r))
		r = 0;
	if (r == 0 && !run_is_open(run) && !is_for_last_chunk(run, request->kind))
		r = -EACCES;
	if (r < 0) {
		send_file(child, request, r, -1, NULL);
		return 0;
	}
	r = files_request(b->modules.files, request, &run->owner, run->pidfd,
			  !run_is_open(run) || !may_have_environ(run, request->kind), send_file,
			  child);
	if (r == -EINVAL)
		child_fail(child, "requests a second file before the first is answered");
	else if (r < 0)
		send_file(child, request, r, -1, NULL);
	return 0;
}

/* A run that is being stopped makes its last chunk, which changes nothing. */
static void chunk_is_finished(const struct run *run)
{
	if (run->phase == RUN_PROFILED)
		lifecycle_chunk_finished(run->instance);
}

static void warn_chunk_budget(struct run *run)
{
	if (run->warned_chunk_budget)
		return;
	run->warned_chunk_budget = true;
	log_warning("process %d: its sentry-profd-unwind makes more chunks than sentry-profd "
		    "accepts from one process: some are discarded; the process may have taken it "
		    "over (chunk_budget in sentry-profd(8))",
		    run->pid);
}

static int on_chunk(void *ctx, struct ipc_message *message)
{
	const struct msg_chunk *m = (const void *)message->bytes;
	struct child *child = ctx;
	struct run *run = own_run(child, m->target);
	int r;

	if (run == NULL)
		return 0;
	if (run->is_for_recordings) {
		child_fail(child, "sends a chunk of a process that is only recorded");
		return 0;
	}
	r = delivery_chunk(&broker_of(child)->modules.delivery, &run->instance->delivery,
			   run->instance->ship, run->instance->config.platform, m, message->fds);
	if (r == -EDQUOT)
		warn_chunk_budget(run);
	else if (r < 0)
		child_fail(child, "sends an invalid chunk");
	if (r == 0 || r == -EDQUOT)
		chunk_is_finished(run);
	return 0;
}

static int on_chunk_lost(void *ctx, struct ipc_message *message)
{
	const struct msg_chunk_lost *m = (const void *)message->bytes;
	struct child *child = ctx;
	struct run *run = own_run(child, m->target);

	if (run == NULL)
		return 0;
	if (m->reason >= DISCARD_N && m->reason != CHUNK_IDLE) {
		child_fail(child, "reports the loss of an invalid chunk");
		return 0;
	}
	if (m->reason == CHUNK_IDLE) {
		run->instance->delivery.chunks.idle++;
		chunk_is_finished(run);
		return 0;
	}
	run->instance->delivery.chunks.made++;
	delivery_lost(&run->instance->delivery, run->instance->ship, m->reason);
	chunk_is_finished(run);
	return 0;
}

static int on_session_opened(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct child *child = ctx;
	struct run *run = own_run(child, m->id);

	if (run == NULL)
		return 0;
	if (run->session != SESSION_ASKED) {
		child_fail(child, "opens a session that was not requested");
		return 0;
	}
	run->session = SESSION_OPEN;
	run->unwind->sessions_asked--;
	attach_check(&broker_of(child)->modules.targets);
	return 0;
}

static int on_session_closed(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct child *child = ctx;
	struct run *run = own_run(child, m->id);

	if (run == NULL)
		return 0;
	if (run->session == SESSION_ASKED) {
		child_fail(child, "closes a session before it is open");
		return 0;
	}
	if (run_is_open(run))
		instance_note_run_cut_short(run->instance);
	run_closed(&broker_of(child)->modules.children.capture, run);
	return 0;
}

static int on_stats(void *ctx, struct ipc_message *message)
{
	const struct msg_unwind_stats *m = (const void *)message->bytes;
	struct run *run = own_run(ctx, m->target);

	if (run != NULL)
		run->unwind_now = m->counts;
	return 0;
}

/* MSG_TABLE_DONE: tables are requested only after the sampling (shutdown.c). */
static int on_table_done(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct broker *b = broker_of(ctx);

	if (state_is_sampling(&b->modules.state))
		return -EPROTO;
	if (m->id != 0)
		log_error("cannot write the table of the hottest functions to standard output: %s",
			  strerror((int)m->id));
	b->table_awaited = false;
	return 0;
}

static int on_usage_done(void *ctx, struct ipc_message *message)
{
	struct unwind *u = ctx;

	(void)message;
	if (!u->usage_unanswered)
		child_fail(&u->child, "reports the end of a message that was not sent");
	u->usage_unanswered = false;
	return 0;
}

static int on_recording_chunk(void *ctx, struct ipc_message *message)
{
	const struct msg_recording_chunk *m = (const void *)message->bytes;
	struct child *child = ctx;
	struct run *run = own_run(child, m->target);

	if (run != NULL && recordings_chunk(&broker_of(child)->requests.recordings, run,
					    m->recording, m->size, message->fds[0]) < 0)
		child_fail(child, "sends an invalid chunk");
	return 0;
}

static int on_recording_lost(void *ctx, struct ipc_message *message)
{
	const struct msg_recording *m = (const void *)message->bytes;
	struct run *run = own_run(ctx, m->target);

	if (run != NULL)
		recordings_lost(&broker_of(ctx)->requests.recordings, run, m->recording);
	return 0;
}

static int on_recording_closed(void *ctx, struct ipc_message *message)
{
	const struct msg_recording *m = (const void *)message->bytes;
	struct run *run = own_run(ctx, m->target);

	if (run != NULL)
		recordings_closed(&broker_of(ctx)->requests.recordings, run, m->recording);
	return 0;
}

static int on_file_seen(void *ctx, struct ipc_message *message)
{
	struct child *child = ctx;

	return leak_check_seen(&broker_of(child)->modules.leak_check, ctx,
			       (const void *)message->bytes);
}

static int on_written(void *ctx, struct ipc_message *message)
{
	struct child *child = ctx;

	delivery_written(&broker_of(child)->modules.delivery, ctx, (const void *)message->bytes);
	return 0;
}

static int on_done(void *ctx, struct ipc_message *message)
{
	struct child *child = ctx;

	delivery_done(&broker_of(child)->modules.delivery, ctx, (const void *)message->bytes);
	return 0;
}

static int on_spool(void *ctx, struct ipc_message *message)
{
	const struct msg_spool *m = (const void *)message->bytes;
	struct ship *s = ctx;

	if (m->counts.sent > s->spool_now.sent)
		s->delivered_ns = clock_mono_ns();
	s->spool_now = m->counts;
	s->spool_error = (int)m->error;
	return 0;
}

static int on_clock(void *ctx, struct ipc_message *message)
{
	const struct msg_clock *m = (const void *)message->bytes;
	struct ship *s = ctx;

	s->clock_ahead_s = m->ahead_s;
	return 0;
}

static int on_limited(void *ctx, struct ipc_message *message)
{
	const struct msg_number *m = (const void *)message->bytes;
	struct child *child = ctx;

	return server_limit_set(ctx, m->n, delivery_has_files(&broker_of(child)->modules.delivery));
}

static int on_denied(void *ctx, struct ipc_message *message)
{
	struct child *child = ctx;

	return server_limit_deny(ctx, (const void *)message->bytes,
				 delivery_has_files(&broker_of(child)->modules.delivery));
}

static int on_pong(void *ctx, struct ipc_message *message)
{
	struct ship *s = ctx;

	(void)message;
	s->ping_checks = 0;
	return 0;
}

static int on_probed(void *ctx, struct ipc_message *message)
{
	return inspect_probed(ctx, (const void *)message->bytes);
}

static int on_exec_held(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct broker *b = ctx;

	if (m->id == 0 || m->id > INT32_MAX)
		return -EPROTO;
	held_execs_ask(&b->modules.targets, (int32_t)m->id);
	return 0;
}

static int handle_from_capture(struct child *child, struct ipc_message *m)
{
	static const struct msg_rule rules[] = {
		{MSG_RING_MADE, on_ring_made},	     {MSG_RING_BROKEN, on_ring_broken},
		{MSG_TARGET_STATE, on_target_state}, {MSG_CAPTURE_DONE, on_capture_done},
		{MSG_CHILD_BORN, on_child_born},     {MSG_EXEC_HELD, on_exec_held},
	};

	return msg_handle(rules, array_size(rules), broker_of(child), m);
}

static int handle_from_unwind(struct child *child, struct ipc_message *m)
{
	static const struct msg_rule rules[] = {
		{MSG_FILE_REQUEST, on_file_request},
		{MSG_CHUNK, on_chunk},
		{MSG_CHUNK_LOST, on_chunk_lost},
		{MSG_UNWIND_STATS, on_stats},
		{MSG_SESSION_OPENED, on_session_opened},
		{MSG_SESSION_CLOSED, on_session_closed},
		{MSG_TABLE_DONE, on_table_done},
		{MSG_USAGE_DONE, on_usage_done},
		{MSG_RECORDING_CHUNK, on_recording_chunk},
		{MSG_RECORDING_LOST, on_recording_lost},
		{MSG_RECORDING_CLOSED, on_recording_closed},
		{MSG_FILE_SEEN, on_file_seen},
	};

	return msg_handle(rules, array_size(rules), child, m);
}

static int handle_from_ship(struct child *child, struct ipc_message *m)
{
	static const struct msg_rule rules[] = {
		{MSG_ENVELOPE_WRITTEN, on_written},
		{MSG_ENVELOPE_DONE, on_done},
		{MSG_SPOOL, on_spool},
		{MSG_LIMITED, on_limited},
		{MSG_DENIED, on_denied},
		{MSG_CLOCK, on_clock},
		{MSG_PROBED, on_probed},
		{MSG_PONG, on_pong},
	};

	return msg_handle(rules, array_size(rules), child, m);
}

void inbox_handle(void *ctx, struct child *child, struct ipc_message *m)
{
	int r = 0;

	(void)ctx;
	switch (child->type->kind) {
	case CHILD_CAPTURE:
		r = handle_from_capture(child, m);
		break;
	case CHILD_UNWIND:
		r = handle_from_unwind(child, m);
		break;
	case CHILD_SHIP:
		r = handle_from_ship(child, m);
		break;
	case CHILD_KIND_N:
		break;
	}
	if (r < 0)
		child_fail(child, "sends an unknown message");
}
