/*
 * sentry-profd-unwind turns the records of capture into chunks. Unwind is the process that reads
 * what targets wrote: stacks, maps and ELF files. It has no privileges, opens no file, and has
 * sockets to the broker and to capture only.
 *
 * One process serves all targets of one uid, through one ring. Each target has a session, for which
 * this process keeps a stream. For MSG_SYMBOLIZE, and for doctor's MSG_FILE_LOOK, sentry-profctl
 * starts a process of its own and takes the broker's place.
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/common/child.h"
#include "daemon/common/log.h"
#include "daemon/common/privileges.h"
#include "daemon/common/random.h"
#include "daemon/common/sandbox.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_io.h"
#include "daemon/unwind/capture_link.h"
#include "daemon/unwind/chunk.h"
#include "daemon/unwind/file_look.h"
#include "daemon/unwind/request.h"
#include "daemon/unwind/resource_limits.h"
#include "daemon/unwind/stream.h"
#include "daemon/unwind/symbolize.h"
#include "lib/aggregate/functions.h"
#include "lib/base/clock.h"
#include "lib/base/table.h"

/* Limit of the cache: rows and symbols of the images of one uid's targets. */
#define CACHE_BYTES_MAX (256u << 20)

/*
 * Limit of files that stay open until their lines are read: a process with a hundred libraries has
 * debug information of a few. At most a quarter of the descriptors that this process may have.
 */
#define FILES_MAX 256

/*
 * Limit of this process's memory: the cache, the largest files that are read
 * (some 500 MB at a time), and chunks (a few MB for 200 ordinary targets).
 */
#define BYTES_MAX ((size_t)2 << 30)

/*
 * Limit of one memfd: an unpacked .gnu_debugdata (DEBUG_FILE_PACKED_MAX), or an encoded chunk,
 * which is at most CHUNK_V2_SIZE_MAX if it is sent.
 */
#define MEMFD_BYTES_MAX ((size_t)256 << 20)

/*
 * Limit of the CPU time between two signs of progress: a request for a file, or a
 * credit. Reading one file takes seconds at most. On a virtual machine the host
 * may charge more CPU time than the process had, so the limit is longer.
 */
#define CPU_NS_MAX (60 * NS_PER_SEC)

static struct {
	struct unwind_cache *cache;
	struct stream *streams[HEARTBEAT_SLOTS];
	size_t n_streams;
	struct table by_target; /* target number of the broker to index in streams */
	struct functions table; /* of all sessions that count in it */
	struct stream *working; /* the stream that time is charged to; NULL: none */
	struct capture_link link;
	uint32_t *reading; /* the page of MSG_INIT */
} me = {.link = {.fd = -1}};

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
 * Charges the time from now on to stream; NULL: to none. A call for the same stream does not read
 * the clock, which takes nearly as long as a short record.
 */
static void charge_time_to(struct stream *stream)
{
	uint64_t now;

	if (stream == me.working)
		return;
	now = clock_mono_ns();
	if (me.working != NULL)
		stream_end_work(me.working, now);
	if (stream != NULL)
		stream_begin_work(stream, now);
	me.working = stream;
}

static void check_sent(int r)
{
	if (r < 0)
		die("cannot send to sentry-profd-capture", -r);
}

static void send_hint(const struct msg_stack_hint *hint)
{
	int r = capture_link_send(&me.link, hint, sizeof(*hint));

	check_sent(r == -EAGAIN ? 0 : r);
}

static void send_want_registers(const struct msg_want_registers *m)
{
	int r = capture_link_send(&me.link, m, sizeof(*m));

	check_sent(r == -EAGAIN ? 0 : r);
}

static bool send_watch(const struct msg_watch *m)
{
	int r = capture_link_send(&me.link, m, sizeof(*m));

	check_sent(r == -EAGAIN ? 0 : r);
	return r == 0;
}

static const struct stream_capture to_capture = {
	.hint = send_hint, .want_registers = send_want_registers, .watch = send_watch};

static int take_record(const struct record *record, size_t size)
{
	struct stream *stream = stream_of(record->target);

	/* The session was closed, which capture did not know when it wrote the record. */
	if (stream == NULL)
		return 0;
	charge_time_to(stream);
	return stream_record(stream, record, size);
}

/* Closes the link after capture has ended: until a new capture is connected nothing is known of the
 * threads. */
static void close_link(void)
{
	capture_link_close(&me.link);
	for (size_t i = 0; i < me.n_streams; i++)
		if (stream_capture_ended(me.streams[i]) < 0)
			die("cannot record the end of sentry-profd-capture", ENOMEM);
}

/* Reads what capture has announced; all: what it has written. Does nothing without a link. */
static void read_link(bool all)
{
	int r;

	if (me.link.fd < 0)
		return;
	r = capture_link_read(&me.link, all, take_record);
	if (r < 0)
		die("cannot process the records from sentry-profd-capture", -r);
	charge_time_to(NULL);
	if (r == 0)
		close_link();
}

static int open_ring(void *ctx, struct ipc_message *m)
{
	(void)ctx;
	read_link(true);
	if (me.link.fd >= 0)
		close_link();
	return capture_link_open(&me.link, m);
}

static int open_session(void *ctx, struct ipc_message *m)
{
	const struct msg_session_open *open = (const void *)m->bytes;
	struct stream *stream;
	int r;

	(void)ctx;
	if (stream_of(open->target) != NULL || me.n_streams == array_size(me.streams))
		return -EPROTO;
	r = stream_new(open, me.cache, &to_capture, open->with_table ? &me.table : NULL, &stream);
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

static int take_usage(void *ctx, struct ipc_message *message)
{
	const struct msg_usage *m = (const void *)message->bytes;

	(void)ctx;
	if (m->n > array_size(m->v))
		return -EPROTO;
	for (size_t i = 0; i < m->n; i++) {
		struct stream *stream = stream_of(m->v[i].target);

		if (stream != NULL)
			stream_add_usage(stream, &m->v[i]);
	}
	return msg_send_id(MSG_FD, MSG_USAGE_DONE, 0);
}

static int write_table(void *ctx, struct ipc_message *message)
{
	const struct msg_table *m = (const void *)message->bytes;
	const int fd = fcntl(message->fds[0], F_DUPFD_CLOEXEC, 0);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int r = out == NULL ? -EIO : 0;

	(void)ctx;
	for (size_t i = 0; i < me.n_streams && r == 0; i++)
		r = stream_update_table(me.streams[i]);
	if (r == 0)
		r = functions_write(&me.table, m->max_rows, m->full_names != 0, out);
	if (out != NULL && fclose(out) != 0 && r == 0)
		r = -EIO;
	return msg_send_id(MSG_FD, MSG_TABLE_DONE, (uint32_t)-r);
}

static int close_session(void *ctx, struct ipc_message *message)
{
	const struct msg_id *m = (const void *)message->bytes;
	struct stream *stream = stream_of(m->id);
	int r;

	(void)ctx;
	/* Records that capture wrote before the target's end come first. */
	read_link(true);
	if (stream != NULL) {
		charge_time_to(stream);
		r = stream_close(stream);
		charge_time_to(NULL);
		return r;
	}
	/* The session was opened in an earlier process. */
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

static int open_recording(void *ctx, struct ipc_message *message)
{
	const struct msg_recording_open *m = (const void *)message->bytes;
	struct stream *stream = stream_of(m->target);

	(void)ctx;
	/* A recording begins after the records of the time before it. */
	read_link(true);
	if (stream != NULL)
		return stream_recording_open(stream, m);
	/* The session was opened in an earlier process. */
	chunk_report_closed(m->target, m->recording);
	return 0;
}

static int close_recording(void *ctx, struct ipc_message *message)
{
	const struct msg_recording *m = (const void *)message->bytes;
	struct stream *stream = stream_of(m->target);
	int r;

	(void)ctx;
	if (stream == NULL)
		return 0;
	/* capture announces records up to half a second after the time that they are about. */
	read_link(true);
	charge_time_to(stream);
	r = stream_recording_close(stream, m->recording);
	charge_time_to(NULL);
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
	return file_look(message->fds[0], (const void *)message->bytes, me.reading);
}

static void on_broker(void)
{
	static const struct msg_rule rules[] = {
		{MSG_SESSION_OPEN, open_session},
		{MSG_SESSION_CLOSE, close_session},
		{MSG_SESSION_FORGET, forget_session},
		{MSG_RING_OPEN, open_ring},
		{MSG_TABLE, write_table},
		{MSG_USAGE, take_usage},
		{MSG_RECORDING_OPEN, open_recording},
		{MSG_RECORDING_CLOSE, close_recording},
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
	/* -EPIPE: the broker has ended, and the next read says so. */
	if (r < 0 && r != -EPIPE)
		die("cannot handle a message from the parent process", -r);
}

/* Returns how many files may stay open between two records. */
static size_t files_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	return (size_t)min_u64(FILES_MAX, limit.rlim_cur / 4);
}

/*
 * Takes the place of glibc's fstat(), in the whole program, which includes libelf and libdw. glibc
 * calls newfstatat(2) with an empty path; a seccomp filter cannot see whether a path is empty, so
 * with newfstatat(2) the process could read the size and the times of any file. The sandbox refuses
 * newfstatat(2) and allows fstat(2). On 64-bit architectures the kernel fills in glibc's struct
 * stat.
 *
 * stdio calls newfstatat(2) inside glibc. On its failure, stdio uses a buffer of the default size.
 */
int fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

static void set_up(const struct msg_init *init, uint32_t *reading)
{
	struct unwind_cache_options options = {
		.max_bytes = CACHE_BYTES_MAX,
		.max_files = files_max(),
		.cpu_ns = clock_cpu_ns,
		.reading = reading,
	};
	int r;

	me.reading = reading;
	resource_limits_be_killed_first();
	r = privileges_drop(init->uid, init->gid, 0, false);
	if (r < 0)
		die("cannot give up privileges", -r);
	chunk_init();
	r = resource_limits_start(BYTES_MAX, MEMFD_BYTES_MAX, CPU_NS_MAX);
	if (r < 0)
		die("cannot set resource limits", -r);
	r = sandbox_enter(SANDBOX_UNWIND, init->seccomp_kill, -1);
	if (r < 0)
		die("cannot enter the sandbox", -r);
	random_bytes(&options.hash_seed, sizeof(options.hash_seed));
	functions_init(&me.table, options.hash_seed);
	r = unwind_cache_new(&options, &me.cache);
	if (r < 0)
		die("cannot create the cache of images", -r);
}

int main(int argc, char **argv)
{
	char library[64];
	struct ipc_message message;
	const struct msg_init *init;

	/* libdw reads CFI and debug information, so wrong stacks may be due to its version. */
	(void)snprintf(library, sizeof(library), "libdw %s", dwfl_version(NULL));
	init = child_start(argc, argv, "sentry-profd-unwind", library, &message);
	set_up(init, request_map_reading_page(&message));
	ipc_close_fds(&message);
	child_send_ready();
	for (;;) {
		struct pollfd fds[] = {{.fd = MSG_FD, .events = POLLIN}, {.events = POLLIN}};

		while (request_has_message())
			on_broker();
		fds[1].fd = me.link.fd;
		if (me.link.owes_credit)
			fds[1].events |= POLLOUT;
		if (poll(fds, array_size(fds), -1) < 0 && errno != EINTR)
			die("cannot wait for messages", errno);
		resource_limits_renew();
		if (fds[1].revents & POLLOUT)
			check_sent(capture_link_give_credit(&me.link));
		if (fds[1].revents & ~POLLOUT)
			read_link(false);
		if (fds[0].revents != 0)
			on_broker();
	}
}
