/*
 * sentry-profd-unwind: the process that reads what targets wrote. It has no
 * privilege, opens nothing and talks to the broker and to capture only.
 *
 * One process serves the targets of one uid, through one ring. Where
 * sentry-profctl has started it, in the broker's place, it serves that one
 * (daemon/unwind/symbolize.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/common/child.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/random.h"
#include "daemon/common/sandbox.h"
#include "daemon/msg/heartbeat.h"
#include "daemon/msg/msg_io.h"
#include "daemon/unwind/chunk.h"
#include "daemon/unwind/credit.h"
#include "daemon/unwind/file_look.h"
#include "daemon/unwind/leash.h"
#include "daemon/unwind/request.h"
#include "daemon/unwind/stream.h"
#include "daemon/unwind/symbolize.h"
#include "lib/base/clock.h"
#include "lib/base/ring.h"
#include "lib/base/table.h"

/* Rows and symbols of the images of one user's targets. */
#define CACHE_BYTES_MAX (256u << 20)

/*
 * All memory of this process: the cache, the largest files that are read (some
 * 500 MB at a time), and chunks: of 200 usual targets these are a few MB.
 */
#define BYTES_MAX ((size_t)2 << 30)

/*
 * Without a file asked for, or a megabyte of the ring read: what bounds one
 * file ends after seconds, but on a machine that its host keeps from its
 * processors they may count for more than they are.
 */
#define CPU_NS_MAX (60 * NS_PER_SEC)

static struct {
	struct unwind_cache *cache;
	struct stream *streams[HEARTBEAT_SLOTS];
	size_t n_streams;
	struct table by_target; /* index in streams; the broker's numbers */
	struct stream *working; /* whose time it is; NULL: nobody's */
	struct ring_reader ring;
	int link_fd; /* to capture; -1: none */
	struct credit credit;
} me = {.link_fd = -1};

static void die(const char *what, int error)
{
	log_error("%s: %s", what, strerror(error));
	exit(EXIT_FAILURE);
}

static struct stream *stream_of(uint32_t target)
{
	uint32_t index;

	return table_get(&me.by_target, target, &index) ? me.streams[index] : NULL;
}

/*
 * One reading of the clock for all records of a target in a row: a record of
 * one that sleeps takes not much longer than a reading.
 */
static void work_for(struct stream *stream)
{
	uint64_t now;

	if (stream == me.working)
		return;
	now = clock_mono_ns();
	if (me.working != NULL)
		stream_rest(me.working, now);
	if (stream != NULL)
		stream_work(stream, now);
	me.working = stream;
}

/* r: of what was sent. Capture may be gone: the broker makes a new link. */
static void check_sent(int r)
{
	if (r < 0 && r != -EPIPE)
		die("the link to capture", -r);
}

/* Where there is no room for it the next one does as well. */
static void send_hint(const struct msg_stack_hint *hint)
{
	int r;

	if (me.link_fd < 0)
		return;
	r = ipc_send(me.link_fd, hint, sizeof(*hint), NULL, 0);
	if (r != -EAGAIN)
		check_sent(r);
}

static void give_credit(void)
{
	leash_renew();
	if (me.link_fd >= 0)
		check_sent(credit_give(&me.credit, &me.ring, me.link_fd));
}

static void take_record(const struct ring_record *ring_record, size_t size)
{
	const struct record *record = (const void *)ring_record;
	struct stream *stream;
	int r;

	if (size < sizeof(*record))
		die("a record of the ring", EPROTO);
	stream = stream_of(record->target);
	/* One that was closed early: capture did not know yet. */
	if (stream == NULL)
		return;
	work_for(stream);
	r = stream_record(stream, record, size);
	if (r < 0)
		die("a record of the ring", -r);
}

static void read_ring(void)
{
	const struct ring_record *record;
	size_t size;
	int r;

	while ((r = ring_next(&me.ring, &record, &size)) > 0) {
		take_record(record, size);
		ring_release(&me.ring, size);
		if (credit_is_due(&me.credit, &me.ring, false))
			give_credit();
	}
	if (r < 0)
		die("the ring", -r);
	if (credit_is_due(&me.credit, &me.ring, true))
		give_credit();
	work_for(NULL);
}

static void close_link(void)
{
	close_fd(&me.link_fd);
	for (size_t i = 0; i < me.n_streams; i++)
		if (stream_interrupted(me.streams[i]) < 0)
			die("a session", ENOMEM);
}

/*
 * Takes the head that waits and reads the ring. all: everything that waits,
 * which costs one more system call to see that nothing does.
 */
static void on_link(bool all)
{
	struct ipc_message m;
	const struct msg_number *head;
	int r;

	do {
		r = ipc_recv(me.link_fd, &m);
		if (r <= 0)
			break;
		head = msg_as(&m, MSG_RING_HEAD);
		if (head == NULL || ring_advance(&me.ring, head->n) < 0)
			die("a message of capture", EPROTO);
	} while (all);
	read_ring();
	if (r == 0)
		close_link();
	else if (r < 0 && r != -EAGAIN)
		die("the link to capture", -r);
}

static int open_ring(void *ctx, struct ipc_message *m)
{
	int r;

	(void)ctx;
	if (me.link_fd >= 0) {
		on_link(true);
		if (me.link_fd >= 0)
			close_link();
	}
	ring_reader_fini(&me.ring);
	r = ring_reader_init(&me.ring, m->fds[0]);
	if (r < 0)
		return r;
	me.credit = (struct credit){0};
	if (fcntl(m->fds[1], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	me.link_fd = ipc_take_fd(m, 1);
	return 0;
}

static int open_session(void *ctx, struct ipc_message *m)
{
	const struct msg_session_open *open = (const void *)m->bytes;
	struct stream *stream;
	int r;

	(void)ctx;
	if (stream_of(open->target) != NULL || me.n_streams == array_size(me.streams))
		return -EPROTO;
	r = stream_new(open, me.cache, send_hint, &stream);
	if (r < 0)
		return r;
	r = table_put(&me.by_target, open->target, (uint32_t)me.n_streams);
	if (r < 0) {
		stream_free(stream);
		return r;
	}
	me.streams[me.n_streams++] = stream;
	return msg_send_id(MSG_FD, MSG_SESSION_OPENED, open->target);
}

static int take_measures(void *ctx, struct ipc_message *message)
{
	const struct msg_measures *m = (const void *)message->bytes;

	(void)ctx;
	if (m->n > array_size(m->v))
		return -EPROTO;
	for (size_t i = 0; i < m->n; i++) {
		struct stream *stream = stream_of(m->v[i].target);

		if (stream != NULL)
			stream_measure(stream, &m->v[i]);
	}
	return msg_send_id(MSG_FD, MSG_MEASURED, 0);
}

static int write_table(void *ctx, struct ipc_message *message)
{
	const struct msg_table *m = (const void *)message->bytes;
	struct stream *stream = stream_of(m->target);
	struct msg_table_done done = {
		.h = MSG_HEADER(MSG_TABLE_DONE),
		.target = m->target,
	};

	(void)ctx;
	/* Its session was in a process before us. */
	done.error =
		stream == NULL ? ENOENT : -stream_write_table(stream, m->max_rows, message->fds[0]);
	return ipc_send(MSG_FD, &done, sizeof(done), NULL, 0);
}

static int close_session(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct stream *stream = stream_of(m->id);
	int r;

	(void)ctx;
	/* What capture wrote before it ended comes first. */
	if (me.link_fd >= 0)
		on_link(true);
	if (stream != NULL) {
		work_for(stream);
		r = stream_close(stream);
		work_for(NULL);
		return r;
	}
	/* Its session was in a process before us. */
	return msg_send_id(MSG_FD, MSG_SESSION_CLOSED, m->id);
}

static int forget_session(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct stream *last;
	uint32_t index;

	(void)ctx;
	if (!table_get(&me.by_target, m->id, &index))
		return 0;
	(void)table_remove(&me.by_target, m->id);
	stream_free(me.streams[index]);
	last = me.streams[--me.n_streams];
	if (index == me.n_streams)
		return 0;
	me.streams[index] = last;
	return table_put(&me.by_target, stream_target(last), index);
}

static int open_record(void *ctx, struct ipc_message *message)
{
	const struct msg_record_open *m = (const void *)message->bytes;
	struct stream *stream = stream_of(m->target);

	(void)ctx;
	if (stream != NULL)
		return stream_record_open(stream, m);
	/* Its session was in a process before us. */
	chunk_record_is_closed(m->target, m->record);
	return 0;
}

static int close_record(void *ctx, struct ipc_message *message)
{
	const struct msg_record *m = (const void *)message->bytes;
	struct stream *stream = stream_of(m->target);
	int r;

	(void)ctx;
	if (stream == NULL)
		return 0;
	work_for(stream);
	r = stream_record_close(stream, m->record);
	work_for(NULL);
	return r;
}

static int take_symbolize(void *ctx, struct ipc_message *message)
{
	(void)ctx;
	return symbolize(me.cache, (const void *)message->bytes, message->fds[0]);
}

static int take_file_look(void *ctx, struct ipc_message *message)
{
	(void)ctx;
	return file_look(message->fds[0]);
}

static void on_broker(void)
{
	static const struct msg_rule rules[] = {
		{MSG_SESSION_OPEN, open_session},
		{MSG_SESSION_CLOSE, close_session},
		{MSG_SESSION_FORGET, forget_session},
		{MSG_RING_OPEN, open_ring},
		{MSG_TABLE, write_table},
		{MSG_MEASURES, take_measures},
		{MSG_RECORD_OPEN, open_record},
		{MSG_RECORD_CLOSE, close_record},
		{MSG_SYMBOLIZE, take_symbolize},
		{MSG_FILE_LOOK, take_file_look},
	};
	struct ipc_message m;
	int r = request_next_message(&m);

	if (r == 0)
		exit(EXIT_SUCCESS);
	if (r > 0)
		r = msg_handle(rules, array_size(rules), NULL, &m);
	ipc_close_fds(&m);
	/* An answer that nobody takes any more: the end comes next. */
	if (r < 0 && r != -EPIPE)
		die("a message of the broker", -r);
}

static void set_up(const struct msg_init *init, uint32_t *reading)
{
	struct unwind_cache_options options = {
		.max_bytes = CACHE_BYTES_MAX, .cpu_ns = clock_cpu_ns, .reading = reading};
	int r;

	r = privileges_drop(init->uid, init->gid, 0, false);
	if (r < 0)
		die("cannot give up privileges", -r);
	chunk_init();
	r = leash_start(BYTES_MAX, CPU_NS_MAX);
	if (r < 0)
		die("cannot limit itself", -r);
	r = sandbox_enter(SANDBOX_UNWIND, init->seccomp_kill, -1);
	if (r < 0)
		die("cannot enter the sandbox", -r);
	random_bytes(&options.hash_seed, sizeof(options.hash_seed));
	r = unwind_cache_new(&options, &me.cache);
	if (r < 0)
		die("cannot start", -r);
}

int main(int argc, char **argv)
{
	struct ipc_message message;
	const struct msg_init *init = child_start(argc, argv, "sentry-profd-unwind", &message);

	set_up(init, request_page(&message));
	ipc_close_fds(&message);
	child_is_ready();
	for (;;) {
		struct pollfd fds[] = {{.fd = MSG_FD, .events = POLLIN}, {.events = POLLIN}};

		while (request_has_message())
			on_broker();
		fds[1].fd = me.link_fd;
		if (me.credit.is_owed)
			fds[1].events |= POLLOUT;
		if (poll(fds, array_size(fds), -1) < 0 && errno != EINTR)
			die("poll", errno);
		leash_renew();
		if (fds[1].revents & POLLOUT)
			give_credit();
		if (fds[1].revents & ~POLLOUT)
			on_link(false);
		if (fds[0].revents != 0)
			on_broker();
	}
}
