/* The test plays the broker: it sends its answers before the stream requests the files. */
#include "daemon/unwind/stream.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/msg/msg_io.h"
#include "lib/aggregate/functions.h"
#include "lib/base/clock.h"
#include "lib/unwind/cpu.h"
#include "tests/unit/suite.h"

#define TARGET	7
#define TID	42
#define NO_FILE 0x9000 /* an address in no file of the maps */
#define TICK_NS (10 * NS_PER_MS)

static const char maps[] = "1000-2000 r-xp 00000000 08:01 7 /bin/first\n"
			   "9000-a000 r-xp 00000000 00:00 0 \n";
/* FILE_KIND_PROGRAM: the executable, which file it is, argv[0], all arguments, the environment. */
static const char first[] = "/bin/first\0\0first\0first -1\0SENTRY_RELEASE=first@1";
static const char second[] = "/bin/second\0\0second\0second -2\0";

static int broker;
static uint32_t answers;
static struct stream *stream;
static struct functions table;
/* Members of msg_session_open. */
static uint32_t recordings_only, cpu_only;

static void answer(const void *text, size_t size)
{
	const struct msg_file_reply file = {
		.h = MSG_HEADER(MSG_FILE_REPLY),
		.request = ++answers,
	};
	int fd = memfd_create("answer", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, text, size));
	OK(lseek(fd, 0, SEEK_SET));
	OK(ipc_send(broker, &file, sizeof(file), &fd, 1));
	close_fd(&fd);
}

static void no_hint(const struct msg_stack_hint *hint)
{
	(void)hint;
}

static void no_request(const struct msg_want_registers *m)
{
	(void)m;
}

static bool no_watch(const struct msg_watch *m)
{
	(void)m;
	return true;
}

static const struct stream_capture no_capture = {
	.hint = no_hint, .want_registers = no_request, .watch = no_watch};

/* Takes the number MSG_FD before Check opens a file with it. */
__attribute__((constructor)) static void take_descriptor(void)
{
	(void)dup2(STDERR_FILENO, MSG_FD);
}

static void set_up(void)
{
	static const struct unwind_cache_options options = {.hash_seed = 1};
	const struct msg_session_open open = {
		.target = TARGET,
		.pid = TID,
		.max_frames = 16,
		.recordings_only = recordings_only,
		.cpu_only = cpu_only,
		.chunk_us = 60 * 1000000,
		.first_chunk_us = 60 * 1000000,
		.wall_offset_us = UINT64_C(1700000000) * 1000000,
		.profiler_id = "0123456789abcdef0123456789abcdef",
		.platform = "native",
		.environment = "production",
	};
	struct unwind_cache *cache;
	int fds[2];

	OK(ipc_pair(fds));
	/* Without an answer the test fails and does not hang. */
	OK(fcntl(fds[0], F_SETFL, O_NONBLOCK));
	OK(fcntl(fds[1], F_SETFL, O_NONBLOCK));
	broker = fds[0];
	ck_assert_int_eq(dup2(fds[1], MSG_FD), MSG_FD);
	close_fd(&fds[1]);
	OK(unwind_cache_new(&options, &cache));
	answer(first, sizeof(first));
	functions_init(&table, 1);
	OK(stream_new(&open, cache, &no_capture, &table, &stream));
}

static void tick(uint64_t time_ns)
{
	const struct record_tick t = {
		.h = {.ring.type = RECORD_TICK, .target = TARGET, .time_ns = time_ns},
		.settled_ns = time_ns,
	};

	OK(stream_record(stream, &t.h, sizeof(t)));
}

static void sample_as(uint64_t time_ns, uint32_t flags, uint64_t pc)
{
	const struct record_sample s = {
		.h = {.ring.type = RECORD_SAMPLE, .target = TARGET, .tid = TID, .time_ns = time_ns},
		.flags = flags,
		.arch = CPU_SAMPLE_ARCH,
		.regs_known = UINT64_C(1) << CPU_SP | UINT64_C(1) << CPU_PC,
		.regs[CPU_PC] = pc,
	};

	OK(stream_record(stream, &s.h, sizeof(s)));
}

static void sample(uint64_t time_ns)
{
	sample_as(time_ns, SAMPLE_RUNNING, NO_FILE);
}

/* Returns the next chunk that the stream has sent. */
static char *chunk(void)
{
	static struct ipc_message m;
	static char payload[65536];
	ssize_t n;

	do {
		ipc_close_fds(&m);
		ck_assert_int_eq(ipc_recv(broker, &m), 1);
		ck_assert_uint_ne(msg_type_of(&m), MSG_CHUNK_LOST);
	} while (msg_type_of(&m) != MSG_CHUNK);
	n = pread(m.fds[0], payload, sizeof(payload) - 1, 0);
	ck_assert_int_gt(n, 0);
	payload[n] = '\0';
	return payload;
}

static const char *release_of_chunk(void)
{
	static const char key[] = "\"release\":\"";
	char *release = strstr(chunk(), key);

	ck_assert_ptr_nonnull(release);
	release += strlen(key);
	*strchr(release, '"') = '\0';
	return release;
}

/* Opens a stream, and adds a tick and a sample of the first program at time_ns. */
static void first_program(uint64_t time_ns)
{
	set_up();
	/* For program_is_other() at the first record. */
	answer(first, sizeof(first));
	answer(maps, sizeof(maps) - 1);
	tick(time_ns);
	sample(time_ns);
}

/* Adds the first tick of a new capture. The process runs the second program now. */
static void second_program(void)
{
	/* For program_is_other(), and for program_open(). */
	answer(second, sizeof(second));
	answer(second, sizeof(second));
	tick(clock_mono_ns());
}

TEST(a_sample_that_is_asleep_runs_where_the_thread_was_last_seen_to_run)
{
	const uint64_t now = clock_mono_ns();

	first_program(now - 3 * TICK_NS);
	tick(now - 2 * TICK_NS);
	sample_as(now - 2 * TICK_NS, SAMPLE_RUNNING | SAMPLE_ASLEEP, NO_FILE + 1);
	tick(now - TICK_NS);
	OK(stream_capture_ended(stream));
	second_program();
	ck_assert_ptr_null(strstr(chunk(), "\"0x9001\""));
}

/* Before the stream had its first record, so no record told of it. */
TEST(a_program_that_was_executed_before_the_first_record)
{
	set_up();
	second_program();
	answer(maps, sizeof(maps) - 1);
	sample(clock_mono_ns());
	tick(clock_mono_ns() + TICK_NS);
	OK(stream_close(stream));
	ck_assert_str_eq(release_of_chunk(), "second@unknown");
}

/* The files may be those of the second program: the exec was not reported. */
TEST(a_program_whose_files_came_after_its_last_record_has_no_release)
{
	const uint64_t now = clock_mono_ns();

	first_program(now - 2 * TICK_NS);
	tick(now - TICK_NS);
	OK(stream_capture_ended(stream));
	second_program();
	ck_assert_str_eq(release_of_chunk(), "unknown");
}

/* The table of programs does not count the process twice in the second program. */
TEST(a_program_whose_files_came_after_its_last_record_has_no_name)
{
	const uint64_t now = clock_mono_ns();

	first_program(now - 2 * TICK_NS);
	tick(now - TICK_NS);
	OK(stream_capture_ended(stream));
	second_program();
	ck_assert_uint_eq(table.programs.n, 1);
	ck_assert_str_eq(table.programs.rows[0].name, "unknown");
}

TEST(a_program_whose_files_came_before_its_last_record_has_a_release)
{
	first_program(clock_mono_ns() - TICK_NS);
	tick(clock_mono_ns());
	OK(stream_capture_ended(stream));
	second_program();
	ck_assert_str_eq(release_of_chunk(), "first@1");
}

static void open_recording(uint32_t number, int expected)
{
	const struct msg_recording_open m = {
		.target = TARGET,
		.recording = number,
		.chunk_us = 60 * 1000000,
		.profiler_id = "ffffffffffffffffffffffffffffffff",
	};

	ck_assert_int_eq(stream_recording_open(stream, &m), expected);
}

/* Returns the next message of this type, and closes its descriptors. */
static struct ipc_message *next_message(uint32_t type)
{
	static struct ipc_message m;

	do
		ck_assert_int_eq(ipc_recv(broker, &m), 1);
	while (msg_type_of(&m) != type && msg_type_of(&m) != MSG_SESSION_CLOSED);
	ck_assert_uint_eq(msg_type_of(&m), type);
	ipc_close_fds(&m);
	return &m;
}

/* The session continues. */
TEST(recordings_have_chunks_and_ends_of_their_own)
{
	const struct msg_recording_chunk *chunk;
	const struct msg_recording *closed;
	uint64_t now = clock_mono_ns();

	first_program(now);
	for (uint32_t i = 1; i <= MSG_RECORDINGS_MAX; i++)
		open_recording(i, 0);
	open_recording(9, -EPROTO); /* MSG_RECORDINGS_MAX are open */
	for (int i = 0; i < 4; i++) {
		now += TICK_NS;
		sample(now);
		tick(now);
	}
	OK(stream_recording_close(stream, 2));
	chunk = (const void *)next_message(MSG_RECORDING_CHUNK)->bytes;
	ck_assert_uint_eq(chunk->recording, 2);
	closed = (const void *)next_message(MSG_RECORDING_CLOSED)->bytes;
	ck_assert_uint_eq(closed->recording, 2);
	OK(stream_recording_close(stream, 2));
	open_recording(1, -EPROTO); /* the number is in use */
	open_recording(0, -EPROTO); /* the session has number 0 */
	open_recording(9, 0);
	OK(stream_close(stream));
	for (size_t i = 0; i < 3; i++) {
		static const uint32_t left[] = {1, 3, 4};

		closed = (const void *)next_message(MSG_RECORDING_CLOSED)->bytes;
		ck_assert_uint_eq(closed->recording, left[i]);
	}
	(void)next_message(MSG_RECORDING_CLOSED);
	(void)next_message(MSG_CHUNK);
	(void)next_message(MSG_SESSION_CLOSED);
	/* What the broker and capture have sent before they knew that the session was closed. */
	open_recording(10, 0);
	closed = (const void *)next_message(MSG_RECORDING_CLOSED)->bytes;
	ck_assert_uint_eq(closed->recording, 10);
	OK(stream_recording_close(stream, 9));
	OK(stream_close(stream));
	sample(now);
	ck_assert_int_eq(ipc_recv(broker, &(struct ipc_message){.size = 0}), -EAGAIN);
}

/* Returns the states of the samples of the next chunk of a recording, two letters each. */
static const char *states_of_recording(void)
{
	static const char key[] = "\"state\":\"";
	static struct ipc_message m;
	static char payload[65536], states[64];
	size_t n_states = 0;
	ssize_t n;

	do {
		ipc_close_fds(&m);
		ck_assert_int_eq(ipc_recv(broker, &m), 1);
	} while (msg_type_of(&m) != MSG_RECORDING_CHUNK);
	n = pread(m.fds[0], payload, sizeof(payload) - 1, 0);
	ipc_close_fds(&m);
	ck_assert_int_gt(n, 0);
	payload[n] = '\0';
	for (const char *at = payload; (at = strstr(at, key)) != NULL; at++) {
		ck_assert_uint_lt(n_states, sizeof(states) - 2);
		memcpy(states + n_states, at + strlen(key), 2);
		n_states += 2;
	}
	states[n_states] = '\0';
	return states;
}

/*
 * The thread runs, is ready by a RECORD_READY, waits, is ready by a sample, and runs. Running
 * samples have no state. In a profile of CPU time they are the only ones with a stack.
 */
TESTS(states_of_records, 2)
{
	uint64_t now = clock_mono_ns();
	struct record ready = {.ring.type = RECORD_READY, .target = TARGET, .tid = TID};

	cpu_only = (uint32_t)_i;
	first_program(now);
	open_recording(1, 0);
	ready.time_ns = now += TICK_NS;
	OK(stream_record(stream, &ready, sizeof(ready)));
	sample_as(now += TICK_NS, 0, NO_FILE);
	sample_as(now += TICK_NS, SAMPLE_READY, NO_FILE);
	tick(now);
	sample(now += TICK_NS);
	tick(now);
	tick(now += TICK_NS);
	OK(stream_recording_close(stream, 1));
	ck_assert_str_eq(states_of_recording(), cpu_only ? "ru" : "reware");
	OK(stream_close(stream));
}

TEST(a_session_with_recordings_only_sends_no_other_chunks)
{
	struct ipc_message m;
	uint64_t now = clock_mono_ns();
	size_t n_recorded = 0;

	recordings_only = 1;
	first_program(now);
	open_recording(1, 0);
	tick(now + TICK_NS);
	OK(stream_close(stream));
	do {
		ck_assert_int_eq(ipc_recv(broker, &m), 1);
		ck_assert_uint_ne(msg_type_of(&m), MSG_CHUNK);
		ck_assert_uint_ne(msg_type_of(&m), MSG_CHUNK_LOST);
		n_recorded += msg_type_of(&m) == MSG_RECORDING_CHUNK;
		ipc_close_fds(&m);
	} while (msg_type_of(&m) != MSG_SESSION_CLOSED);
	ck_assert_uint_eq(n_recorded, 1);
}
