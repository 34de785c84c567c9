/*
 * What the broker's children send to it: the broker's reading of each child's messages.
 *
 * A whole broker runs its turns in this process. Its children are made up: fork(2), kill(2),
 * wait(2) and CLOCK_MONOTONIC are replaced below, and the fuzzer is at the other end of each
 * child's socket. An input is a byte, which is odd if envelopes go into files, too, and then a
 * sequence of steps (enum step): a child sends a valid message
 * about a target that exists, a message with some fields replaced, or any bytes, with too few or
 * too many descriptors; answers what it was asked; writes into its shared page; reads nothing;
 * dies. Meanwhile time passes, and processes come, go, and are recorded.
 *
 * The checks: a child is killed at most once and no other process ever, the broker's counts agree
 * with its lists, and at the end no descriptor is left.
 */
#include "tests/fuzz/fuzz.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/children/child.h"
#include "daemon/broker/children/children.h"
#include "daemon/broker/children/reap.h"
#include "daemon/broker/control/inspect.h"
#include "daemon/broker/control/recordings.h"
#include "daemon/broker/deadlines.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/report/metrics.h"
#include "daemon/broker/report/status.h"
#include "daemon/broker/targets/attach.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/broker/targets/instances.h"
#include "daemon/broker/turn.h"
#include "daemon/broker/wiring.h"
#include "daemon/common/log.h"
#include "daemon/common/version.h"
#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "daemon/msg/page.h"
#include "daemon/process/process.h"
#include "lib/base/clock.h"
#include "lib/base/ipc.h"
#include "lib/base/sealed.h"

/* The broker's, which no child reads. */
const char version_text[] = SENTRY_PROFD_VERSION;

#define STEPS_MAX 400
#define FAKES_MAX 64
#define SUBJECTS  4
#define USER(n)	  (1000 + (uid_t)((n) / 2))

/* Above the largest pid that Linux gives. */
#define FIRST_PID (1 << 23)

/* A child of the broker, or a helper that opens files. */
struct fake {
	int32_t pid; /* 0: free */
	int end;     /* the other end of its socket; -1: closed */
	int page;    /* the page of MSG_INIT; -1: none */
	bool is_deaf, is_ended;
	int status; /* of wait(2) */
};

static struct fake fakes[FAKES_MAX];
static int32_t last_pid;
static int newest_end = -1; /* the second socket of the newest pair */
static uint64_t now_ns;

/* Processes that are profiled, of two users. They sleep. */
static struct {
	int32_t pid;
	int pidfd;
} subjects[SUBJECTS];

static FILE *nowhere;
/* For the files, which the next input overwrites. In memory. */
static char dir_path[] = "/dev/shm/sentry-profd-fuzz.XXXXXX";
static struct broker b;
static struct control_peer operator_peer = {.identity = {.is_operator = true, .sees_all = true},
					    .version = PROTOCOL_VERSION};
/* The sockets of the last recordings. */
static int readers[4] = {-1, -1, -1, -1};

/* The system calls of the broker that the fuzzer answers. */

static struct fake *fake_of(int32_t pid)
{
	for (size_t i = 0; i < FAKES_MAX; i++)
		if (pid != 0 && fakes[i].pid == pid)
			return &fakes[i];
	return NULL;
}

pid_t fork(void)
{
	for (size_t i = 0; i < FAKES_MAX; i++) {
		if (fakes[i].pid != 0)
			continue;
		fakes[i] = (struct fake){
			.pid = ++last_pid,
			.end = fcntl(newest_end, F_DUPFD_CLOEXEC, 0),
			.page = -1,
		};
		return fakes[i].pid;
	}
	errno = EAGAIN;
	return -1;
}

int socketpair(int domain, int type, int protocol, int fds[2])
{
	int r = (int)syscall(SYS_socketpair, domain, type, protocol, fds);

	newest_end = r < 0 ? -1 : fds[1];
	return r;
}

/* The executables of the children exist. */
int access(const char *path, int mode)
{
	return strstr(path, "/sentry-profd-") != NULL ? 0 : faccessat(AT_FDCWD, path, mode, 0);
}

int kill(pid_t pid, int number)
{
	struct fake *f = fake_of(pid);

	/* Only its children, and each but once: its pid may be another's after wait(2). */
	assert(f != NULL && number == SIGKILL);
	if (!f->is_ended) {
		f->is_ended = true;
		f->status = SIGKILL;
	}
	return 0;
}

int waitid(idtype_t type, id_t id, siginfo_t *ret, int flags)
{
	(void)type, (void)id, (void)flags;
	ret->si_pid = 0;
	for (size_t i = 0; i < FAKES_MAX; i++)
		if (fakes[i].pid != 0 && fakes[i].is_ended)
			ret->si_pid = fakes[i].pid;
	return 0;
}

pid_t wait4(pid_t pid, int *status, int flags, struct rusage *usage)
{
	struct fake *f = fake_of(pid);

	(void)flags;
	assert(f != NULL && f->is_ended);
	*status = f->status;
	memset(usage, 0, sizeof(*usage));
	close_fd(&f->end);
	close_fd(&f->page);
	f->pid = 0;
	return pid;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	if (id != CLOCK_MONOTONIC && id != CLOCK_BOOTTIME)
		return (int)syscall(SYS_clock_gettime, id, ret);
	ret->tv_sec = (time_t)(now_ns / NS_PER_SEC);
	ret->tv_nsec = (long)(now_ns % NS_PER_SEC);
	return 0;
}

static uint64_t read_wall(void)
{
	return now_ns + UINT64_C(1700000000) * NS_PER_SEC;
}

/* The log: lines are made, as their arguments matter, and go nowhere. */

__attribute__((format(printf, 1, 0))) static void make_line(const char *format, va_list args)
{
	char text[5120];

	(void)vsnprintf(text, sizeof(text), format, args);
}

#define LOGS(name)                         \
	void name(const char *format, ...) \
	{                                  \
		va_list args;              \
                                           \
		va_start(args, format);    \
		make_line(format, args);   \
		va_end(args);              \
	}

LOGS(log_error)
LOGS(log_warning)
LOGS(log_debug)
LOGS(log_info)

void log_list_entry(bool is_warning, const char *format, ...)
{
	va_list args;

	(void)is_warning;
	va_start(args, format);
	make_line(format, args);
	va_end(args);
}

void log_init(const char *name, bool debug)
{
	(void)name, (void)debug;
}

bool log_goes_to_journal(void)
{
	return false;
}

void log_set_subject(const char *subject)
{
	(void)subject;
}

bool log_relay(const char *name, const char *line)
{
	(void)name, (void)line;
	return true;
}

void log_report_suppressed(void)
{
}

bool log_has_lost_lines(void)
{
	return false;
}

/* The broker, from its start to its end. */

static void make_subjects(void)
{
	for (size_t i = 0; i < SUBJECTS; i++) {
		const pid_t parent = getpid();
		const pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		assert(pid >= 0);
		if (pid == 0) {
			/* Two of each user. Root only; else all are of one user. */
			(void)!setresgid(USER(i), USER(i), USER(i));
			(void)!setresuid(USER(i), USER(i), USER(i));
			(void)prctl(PR_SET_DUMPABLE, 1);
			/* After the change of users, which clears it. */
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(0);
			for (;;)
				(void)pause();
		}
		subjects[i].pid = pid;
		subjects[i].pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		assert(subjects[i].pidfd >= 0);
	}
}

static void add_subject(size_t n)
{
	struct process p = {
		.pid = subjects[n].pid,
		.start_ticks = 1,
	};
	struct instance *i;

	if (instance_of_pid(&b.modules.targets, p.pid) != NULL ||
	    b.modules.targets.n_instances > 16)
		return;
	p.pidfd = fcntl(subjects[n].pidfd, F_DUPFD_CLOEXEC, 0);
	if (instance_add_attached(&b.modules.targets, &p, INSTANCE_ATTACHED, &i) < 0)
		close_fd(&p.pidfd);
}

static void start_broker(bool has_files)
{
	struct config *c = &b.modules.state.options.config;

	memset(&b, 0, sizeof(b));
	memset(fakes, 0, sizeof(fakes));
	last_pid = FIRST_PID;
	now_ns = 1000 * NS_PER_SEC;
	wiring_connect(&b);
	b.stats_fd = b.command.go_fd = b.notify.fd = b.modules.delivery.output.dir_fd = -1;
	if (has_files)
		b.modules.delivery.output.dir_fd = open(dir_path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < INIT_FILE_N; i++)
		b.modules.children.ship_fds[i] = -1;
	b.modules.state.clocks = (struct state_clocks){clock_mono_ns, clock_boot_ns, read_wall};
	config_init(c);
	c->cpu_budget = 1;
	c->chunk_seconds = 1;
	(void)snprintf(c->dsn, sizeof(c->dsn), "http://key@127.0.0.1/1");
	memcpy(c->implicit.dsn, c->dsn, sizeof(c->dsn));
	memcpy(b.modules.children.dsn, c->dsn, sizeof(c->dsn));
	b.modules.children.has_dsn = true;
	b.modules.state.options.children = true;
	b.modules.state.timer_hz = 101;
	b.modules.state.period_ns = NS_PER_SEC / 101;
	b.modules.state.epoch_ns = now_ns;
	quarantine_init(&b.modules.quarantine);
	assert(loop_new(&b.modules.state.loop) == 0);
	assert(files_new(b.modules.state.loop, &b.modules.files) == 0);
	children_init(&b.modules.children);
	assert(children_start(&b.modules.children) == 0);
	add_subject(0);
	add_subject(2);
}

static void free_recordings(void)
{
	for (size_t i = 0; i < array_size(readers); i++)
		close_fd(&readers[i]);
	recordings_gone(&b.requests.recordings, &operator_peer);
	while (b.requests.recordings.first != NULL) {
		recordings_check(&b.requests.recordings);
		recordings_sweep(&b.requests.recordings);
	}
}

static void free_instances(struct targets *ts)
{
	for (size_t k = 0; k < ts->n_instances; k++) {
		struct instance *i = ts->instances[k];

		assert(i->delivery.n_envelopes == 0);
		loop_remove(b.modules.state.loop, &i->source);
		close_fd(&i->pidfd);
		free(i);
	}
	free(ts->instances);
}

static void end_broker(void)
{
	struct child *child;

	state_advance(&b.modules.state, PHASE_CLOSING);
	children_kill(&b.modules.children);
	children_reap(&b.modules.children);
	delivery_give_up(&b.modules.delivery);
	FOR_EACH_RUN (run, &b.modules.targets)
		run->session = SESSION_NONE;
	free_recordings();
	if (b.requests.inspector.current != NULL) {
		now_ns += 1000 * NS_PER_SEC;
		inspect_check(&b.requests.inspector);
		free(b.requests.inspector.current);
	}
	FOR_EACH_RUN (run, &b.modules.targets)
		attach_retire(run);
	targets_sweep(&b.modules.targets);
	free_instances(&b.modules.targets);
	for (size_t i = 0; (child = child_at(&b.modules.children, i)) != NULL; i++)
		child->is_leaving = true;
	children_sweep(&b.modules.children);
	assert(b.modules.children.n_unwinds == 0 && b.modules.children.n_ships == 0);
	page_free(b.modules.children.heartbeat, sizeof(*b.modules.children.heartbeat));
	close_fd(&b.modules.delivery.output.dir_fd);
	files_free(b.modules.files);
	quarantine_clear(&b.modules.quarantine);
	loop_free(b.modules.state.loop);
	config_fini(&b.modules.state.options.config);
	for (size_t i = 0; i < FAKES_MAX; i++)
		if (fakes[i].pid != 0) {
			close_fd(&fakes[i].end);
			close_fd(&fakes[i].page);
		}
}

/* What has to hold after each turn. */
static void check_broker(void)
{
	const struct children *c = &b.modules.children;
	size_t in_flight = 0;

	for (size_t i = 0; i < c->n_ships; i++) {
		assert(c->ships[i]->n_handed <= MSG_ENVELOPES_MAX);
		assert(c->ships[i]->n_handed <= c->ships[i]->n_in_flight);
		in_flight += c->ships[i]->n_in_flight;
	}
	assert(in_flight == b.modules.delivery.n_in_flight);
	for (size_t i = 0; i < c->n_unwinds; i++) {
		const struct unwind *u = c->unwinds[i];
		size_t asked = 0;

		FOR_EACH_RUN (run, &b.modules.targets)
			asked += run->unwind == u && run->session == SESSION_ASKED;
		assert(asked == u->sessions_asked && asked <= MSG_SESSIONS_ASKED_MAX);
	}
	for (size_t k = 0; k < b.modules.targets.n_instances; k++) {
		const struct chunk_counts *n = &b.modules.targets.instances[k]->delivery.chunks;
		uint64_t outcomes = n->sent + n->spooled;

		for (size_t i = 0; i < DISCARD_REASONS_MAX; i++)
			outcomes += n->discarded[i];
		/* Envelopes that have ended are gone: turn_run_once() sweeps. */
		assert(delivery_has_files(&b.modules.delivery) ||
		       n->made == outcomes + b.modules.targets.instances[k]->delivery.n_envelopes);
	}
}

/* The children. */

static struct child *pick_child(uint8_t n)
{
	size_t count = 0;

	while (child_at(&b.modules.children, count) != NULL)
		count++;
	return child_at(&b.modules.children, n % count);
}

/* Reads what the broker has sent to a child, and keeps its page. */
static void listen_to_broker(struct fake *f)
{
	struct ipc_message m;

	while (f->end >= 0 && !f->is_deaf && recv(f->end, &m, 1, MSG_PEEK | MSG_DONTWAIT) > 0) {
		if (ipc_recv(f->end, &m) <= 0)
			break;
		if (((const struct msg_header *)(const void *)m.bytes)->type == MSG_INIT &&
		    m.n_fds == 1 && f->page < 0)
			f->page = ipc_take_fd(&m, 0);
		ipc_close_fds(&m);
	}
}

static void run_turn(void)
{
	for (size_t i = 0; i < FAKES_MAX; i++)
		if (fakes[i].pid != 0)
			listen_to_broker(&fakes[i]);
	children_reap(&b.modules.children);
	turn_run_once(&b, 0);
	check_broker();
}

/* A sealed memfd of this size, as a payload is. */
static int payload(size_t size)
{
	struct sealed s;
	uint64_t made;
	int fd;

	assert(sealed_open(&s, "payload") == 0);
	for (size_t i = 0; i < size; i++)
		(void)fputc('{', s.out);
	assert(sealed_close(&s, 0, &fd, &made) == 0);
	return fd;
}

static const struct {
	enum child_kind from;
	uint32_t type, size, fds;
} messages[] = {
#define M(kind, type, n_fds)                   \
	{                                      \
		kind, type, type##_SIZE, n_fds \
	}
	M(CHILD_CAPTURE, MSG_RING_MADE, 1),
	M(CHILD_CAPTURE, MSG_TARGET_STATE, 0),
	M(CHILD_CAPTURE, MSG_RING_BROKEN, 0),
	M(CHILD_CAPTURE, MSG_CAPTURE_DONE, 0),
	M(CHILD_CAPTURE, MSG_CHILD_BORN, 0),
	M(CHILD_CAPTURE, MSG_EXEC_HELD, 0),
	M(CHILD_UNWIND, MSG_FILE_REQUEST, 0),
	M(CHILD_UNWIND, MSG_CHUNK, 1),
	M(CHILD_UNWIND, MSG_CHUNK_LOST, 0),
	M(CHILD_UNWIND, MSG_SESSION_OPENED, 0),
	M(CHILD_UNWIND, MSG_SESSION_CLOSED, 0),
	M(CHILD_UNWIND, MSG_UNWIND_STATS, 0),
	M(CHILD_UNWIND, MSG_TABLE_DONE, 0),
	M(CHILD_UNWIND, MSG_USAGE_DONE, 0),
	M(CHILD_UNWIND, MSG_RECORDING_CHUNK, 1),
	M(CHILD_UNWIND, MSG_RECORDING_LOST, 0),
	M(CHILD_UNWIND, MSG_RECORDING_CLOSED, 0),
	M(CHILD_SHIP, MSG_ENVELOPE_WRITTEN, 0),
	M(CHILD_SHIP, MSG_ENVELOPE_DONE, 0),
	M(CHILD_SHIP, MSG_SPOOL, 0),
	M(CHILD_SHIP, MSG_LIMITED, 0),
	M(CHILD_SHIP, MSG_DENIED, 0),
	M(CHILD_SHIP, MSG_CLOCK, 0),
	M(CHILD_SHIP, MSG_PROBED, 0),
	M(CHILD_SHIP, MSG_PONG, 0),
#undef M
};

/* Any message of the daemon, with all that one may be about. */
union any_message {
	struct msg_header h;
	struct msg_id id;
	struct msg_number number;
	struct msg_target_state state;
	struct msg_file_request file;
	struct msg_chunk chunk;
	struct msg_chunk_lost lost;
	struct msg_unwind_stats stats;
	struct msg_recording_chunk recorded;
	struct msg_recording recording;
	struct msg_envelope_written written;
	struct msg_envelope_done done;
	struct msg_spool spool;
	struct msg_clock clock;
	struct msg_probed probed;
	struct msg_denied denied;
	uint8_t bytes[1024];
};

/* Returns a target of the child, most times; else any. */
static uint32_t pick_target(const struct child *child, uint8_t n)
{
	uint32_t ids[HEARTBEAT_SLOTS];
	size_t count = 0;

	FOR_EACH_RUN (run, &b.modules.targets)
		if (n >= 240 || child->type->kind != CHILD_UNWIND ||
		    run->unwind == (const struct unwind *)child)
			ids[count++] = run->id;
	return count == 0 ? n : ids[n % count];
}

/* Returns an envelope that the ship may have. */
static uint64_t pick_seq(uint8_t n)
{
	return b.modules.delivery.last_seq - n % 8;
}

/* Fills in what makes the message valid. arg chooses among the possibilities. */
static void make_valid(union any_message *m, const struct child *child, uint8_t which, uint8_t arg,
		       size_t payload_size)
{
	const uint32_t target = pick_target(child, which);

	switch (m->h.type) {
	case MSG_RING_MADE:
	case MSG_RING_BROKEN:
		m->id.id = 1 + arg % 3;
		break;
	case MSG_CHILD_BORN:
	case MSG_EXEC_HELD:
		m->id.id = (uint32_t)subjects[arg % SUBJECTS].pid;
		break;
	case MSG_TARGET_STATE:
		m->state.target = target;
		m->state.state = 1 + arg % 7;
		m->state.error = arg / 6;
		m->state.tid = (uint32_t)subjects[arg % SUBJECTS].pid;
		m->state.signal = arg / 6;
		break;
	case MSG_FILE_REQUEST:
		m->file.request = arg;
		m->file.kind = 1 + arg % 7;
		m->file.target = target;
		m->file.start = 4096;
		m->file.end = 8192;
		(void)snprintf(m->file.name, sizeof(m->file.name), "deadbeef");
		break;
	case MSG_CHUNK:
		m->chunk.target = target;
		m->chunk.for_server = arg & 1;
		m->chunk.size = payload_size;
		memset(m->chunk.chunk_id, 'a', MSG_ID_SIZE - 1);
		(void)snprintf(m->chunk.platform, sizeof(m->chunk.platform), "%s",
			       b.modules.state.options.config.implicit.platform);
		break;
	case MSG_CHUNK_LOST:
		m->lost.target = target;
		m->lost.reason = arg == 255 ? CHUNK_IDLE : arg % 30;
		break;
	case MSG_UNWIND_STATS:
		m->stats.target = target;
		m->stats.counts.stacks = arg;
		break;
	case MSG_RECORDING_CHUNK:
		m->recorded.target = target;
		m->recorded.recording = 1 + arg % 4;
		m->recorded.size = payload_size;
		break;
	case MSG_RECORDING_LOST:
	case MSG_RECORDING_CLOSED:
		m->recording.target = target;
		m->recording.recording = 1 + arg % 4;
		break;
	case MSG_ENVELOPE_WRITTEN:
		m->written.seq = pick_seq(which);
		m->written.error = arg % 4 == 3 ? arg : 0;
		break;
	case MSG_ENVELOPE_DONE:
		m->done.seq = pick_seq(which);
		m->done.result = arg % 3;
		break;
	case MSG_LIMITED:
		m->number.n = arg == 0 ? 0 : now_ns + arg * NS_PER_SEC;
		break;
	case MSG_DENIED:
		m->denied.status = arg % 2 * 403;
		break;
	case MSG_CLOCK:
		m->clock.ahead_s = (int8_t)arg;
		break;
	case MSG_SPOOL:
		m->spool.counts.count = arg;
		break;
	case MSG_PROBED:
		m->probed.status = arg;
		break;
	default:
		m->id.id = target;
		break;
	}
}

static void replace_fields(union any_message *m, size_t size, struct fuzz_input *in)
{
	uint8_t n, at;
	uint64_t value;

	fuzz_take(in, &n, sizeof(n));
	for (; n % 4 > 0; n--) {
		fuzz_take(in, &at, sizeof(at));
		fuzz_take(in, &value, sizeof(value));
		memcpy(m->bytes + at * 4 % size, &value,
		       min_size(sizeof(value), size - at * 4 % size));
	}
}

static void send_to_broker(struct child *child, const void *bytes, size_t size, size_t n_fds,
			   size_t payload_size)
{
	const struct fake *f = fake_of(child->pid);
	int fds[IPC_FDS_MAX];

	if (f == NULL || f->end < 0 || f->is_ended || size == 0)
		return;
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = i == 0 && payload_size > 0 ? payload(payload_size)
						    : open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)fcntl(f->end, F_SETFL, O_NONBLOCK);
	(void)!ipc_send(f->end, bytes, size, fds, n_fds);
	for (size_t i = 0; i < n_fds; i++)
		close_fd(&fds[i]);
}

static void send_ready(struct child *child)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_READY)};

	send_to_broker(child, &m, sizeof(m), 0, 0);
}

static void send_message(struct child *child, struct fuzz_input *in, bool is_valid)
{
	struct {
		uint8_t type, which, arg, fds;
	} head;
	union any_message m = {.bytes = {0}};
	size_t n = 0, at = 0, size, fds, payload_size;

	fuzz_take(in, &head, sizeof(head));
	for (size_t i = 0; i < array_size(messages); i++)
		n += messages[i].from == child->type->kind;
	while (messages[at].from != child->type->kind)
		at++;
	/* A message of another kind of child, now and then. */
	at = head.type >= 250 ? head.type % array_size(messages) : at + head.type % n;
	size = messages[at].size;
	fds = messages[at].fds;
	payload_size = messages[at].type == MSG_RING_MADE ? 0 : fds * (1 + head.fds / 8);
	m.h = (struct msg_header){.type = messages[at].type, .size = (uint32_t)size};
	make_valid(&m, child, head.which, head.arg, payload_size);
	if (!is_valid) {
		replace_fields(&m, size, in);
		fds = head.fds % (IPC_FDS_MAX + 1);
		size -= head.fds >= 250;
	}
	send_to_broker(child, &m, size, fds, payload_size);
}

static void send_bytes(struct child *child, struct fuzz_input *in)
{
	uint8_t size;
	size_t n;
	const uint8_t *bytes;

	fuzz_take(in, &size, sizeof(size));
	n = size;
	bytes = fuzz_take_bytes(in, &n);
	send_to_broker(child, bytes, n, size % (IPC_FDS_MAX + 1), 0);
}

/* Eight bytes of the page of capture or unwind. */
static void write_page(struct child *child, struct fuzz_input *in)
{
	struct fake *f = fake_of(child->pid);
	uint64_t value;
	uint16_t at;
	off_t size;

	fuzz_take(in, &at, sizeof(at));
	fuzz_take(in, &value, sizeof(value));
	if (f == NULL)
		return;
	listen_to_broker(f);
	if (f->page < 0)
		return;
	size = lseek(f->page, 0, SEEK_END);
	(void)!pwrite(f->page, &value, min_size(sizeof(value), (size_t)size),
		      (off_t)(at * sizeof(value)) % (size > 8 ? size & ~7 : 1));
}

static void end_child(struct child *child, uint8_t how)
{
	static const int signals[] = {SIGSEGV, SIGKILL, SIGABRT, SIGXCPU};
	struct fake *f = fake_of(child->pid);

	if (f == NULL || f->is_ended)
		return;
	f->is_ended = true;
	f->status = how < 128 ? (how % 3) << 8 : signals[how % array_size(signals)];
}

/* A helper of the broker has opened a file, or could not. */
static void answer_helpers(uint8_t how)
{
	struct {
		int32_t error;
		struct file_label file;
	} answer = {.error = how % 4 == 0 ? ENOENT : 0, .file.name = "/bin/file"};
	struct child *child;

	for (size_t i = 0; i < FAKES_MAX; i++) {
		bool is_child = fakes[i].pid == 0 || fakes[i].is_ended || fakes[i].end < 0;
		int fd;

		for (size_t k = 0; (child = child_at(&b.modules.children, k)) != NULL; k++)
			is_child |= child->pid == fakes[i].pid;
		if (is_child)
			continue;
		answer.file.identity.inode = how;
		fd = payload(1);
		(void)!ipc_send(fakes[i].end, &answer, sizeof(answer), &fd, answer.error == 0);
		close_fd(&fd);
	}
}

static void read_recording(int fd)
{
	char bytes[PROTOCOL_RECORDED_MAX];

	while (fd >= 0 && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
}

static void record(uint8_t n)
{
	int *reader = &readers[n % array_size(readers)];
	const struct protocol_request m = {
		.h.type = n & 4 ? PROTOCOL_WATCH : PROTOCOL_RECORD,
		.pid = subjects[n % SUBJECTS].pid,
	};
	struct control_answer answer = {.fd = -1};

	if (instance_of_pid(&b.modules.targets, m.pid) == NULL)
		return;
	if (n & 16) {
		read_recording(*reader);
	} else if (n & 8) {
		recordings_finish(&b.requests.recordings, &operator_peer);
	} else {
		recordings_request(&b.requests.recordings, &operator_peer, &m, &answer);
		close_fd(reader);
		*reader = answer.fd;
	}
}

static void inspect(void)
{
	static const struct config_faults none;
	FILE *const out = stdout;

	if (b.requests.inspector.current != NULL)
		return;
	/* Where the findings go. */
	stdout = nowhere;
	assert(inspect_options(&b.requests.inspector, &none) == 0);
	stdout = out;
}

static void report(void)
{
	uint32_t size;
	int fd;

	assert(status_make(&b.modules, &operator_peer.identity, &fd, &size) == 0);
	close_fd(&fd);
	assert(metrics_make(&b.modules, &operator_peer.identity, true, &fd, &size) == 0);
	close_fd(&fd);
}

static void change_subject(uint8_t n)
{
	struct instance *i = instance_of_pid(&b.modules.targets, subjects[n % SUBJECTS].pid);

	if (i == NULL)
		add_subject(n % SUBJECTS);
	else if (n & 4)
		instance_becomes(i, n & 8 ? INSTANCE_ENDED : INSTANCE_REMOVED);
	else if (i->run != NULL)
		attach_stop(&b.modules.targets, i->run);
}

enum step {
	STEP_VALID,
	STEP_VALID_AGAIN, /* as often again as the others */
	STEP_CHANGED,
	STEP_BYTES,
	STEP_READY,
	STEP_PAGE,
	STEP_END,
	STEP_CLOSE,
	STEP_DEAF,
	STEP_TURN,
	STEP_TIME,
	STEP_OVERDUE,
	STEP_HELPERS,
	STEP_SUBJECT,
	STEP_RECORD,
	STEP_INSPECT,
	STEP_REPORT,
	STEP_N
};

static void take_step(struct fuzz_input *in)
{
	struct {
		uint8_t step, child, arg;
	} s;
	struct child *child;
	struct fake *f;

	fuzz_take(in, &s, sizeof(s));
	child = pick_child(s.child);
	f = fake_of(child->pid);
	switch ((enum step)(s.step % STEP_N)) {
	case STEP_VALID:
	case STEP_VALID_AGAIN:
	case STEP_CHANGED:
		send_message(child, in, s.step % STEP_N != STEP_CHANGED);
		break;
	case STEP_BYTES:
		send_bytes(child, in);
		break;
	case STEP_READY:
		send_ready(child);
		break;
	case STEP_PAGE:
		write_page(child, in);
		break;
	case STEP_END:
		end_child(child, s.arg);
		break;
	case STEP_CLOSE:
		if (f != NULL)
			close_fd(&f->end);
		break;
	case STEP_DEAF:
		if (f != NULL)
			f->is_deaf = true;
		break;
	case STEP_TIME:
		now_ns += (uint64_t)(s.arg * s.arg) * NS_PER_MS;
		break;
	case STEP_OVERDUE:
		for (int i = 0; i < s.arg % 64; i++)
			deadlines_check_answers(&b);
		break;
	case STEP_HELPERS:
		answer_helpers(s.arg);
		break;
	case STEP_SUBJECT:
		change_subject(s.arg);
		break;
	case STEP_RECORD:
		record(s.arg);
		break;
	case STEP_INSPECT:
		inspect();
		break;
	case STEP_REPORT:
		report();
		break;
	case STEP_TURN:
	case STEP_N:
		break;
	}
	/* Several messages may come in one turn. */
	if (s.step < 192)
		run_turn();
}

static void remove_files(void)
{
	DIR *dir = opendir(dir_path);
	const struct dirent *e;

	while (dir != NULL && (e = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	(void)closedir(dir);
	(void)rmdir(dir_path);
}

static size_t count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	assert(dir != NULL);
	while (readdir(dir) != NULL)
		n++;
	(void)closedir(dir);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct child *child;
	static bool is_set_up;
	uint8_t flags;
	size_t before;

	if (!is_set_up) {
		is_set_up = true;
		make_subjects();
		nowhere = fopen("/dev/null", "we");
		assert(nowhere != NULL);
		assert(mkdtemp(dir_path) != NULL && atexit(remove_files) == 0);
		/* Otherwise a socket of the broker may get this number, and then another one. */
		while (dup(STDIN_FILENO) <= MSG_FD)
			continue;
	}
	before = count_descriptors();
	fuzz_take(&in, &flags, sizeof(flags));
	start_broker(flags & 1);
	for (size_t i = 0; (child = child_at(&b.modules.children, i)) != NULL; i++)
		send_ready(child);
	run_turn();
	for (size_t i = 0; (child = child_at(&b.modules.children, i)) != NULL; i++)
		if (child->state == CHILD_STARTS)
			send_ready(child);
	for (int i = 0; i < STEPS_MAX && in.left > 0; i++)
		take_step(&in);
	run_turn();
	end_broker();
	assert(count_descriptors() == before);
	return 0;
}
