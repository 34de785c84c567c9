/*
 * Envelopes on their way to the ships: which are dropped if there are too many, what a restarted
 * ship gets, and how losses are reported. Both instances send to ships[0]. A ship has a process
 * after new_process(); then the test receives the messages to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/broker/broker.h"
#include "daemon/broker/delivery/delivery.h"
#include "daemon/broker/targets/instance.h"
#include "daemon/config/config.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_io.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/ipc.h"
#include "proto/chunk_v2.h"
#include "proto/profile.h"
#include "tests/unit/daemon/broker/broker_builder.h"
#include "tests/unit/suite.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

enum { SMALL = 100 * 1000, BEHIND = 60 << 20 };

static struct broker broker;
static struct ship ships[2];
static struct instance instances[2];

static void set_up(void)
{
	struct broker *b = &broker;

	build_broker(b);
	for (size_t i = 0; i < 2; i++)
		build_ship(b, &ships[i]);
	b->modules.children.has_dsn = true;
	memset(instances, 0, sizeof(instances));
	for (size_t i = 0; i < 2; i++) {
		memcpy(instances[i].config.platform, "rust", sizeof("rust"));
		instances[i].targets = &b->modules.targets;
		instances[i].ship = &ships[0];
	}
}

/* more: the bytes of pages that the payload has behind its end. */
static int make_payload(uint64_t size, uint64_t more, int seals)
{
	int fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char *bytes = calloc(1, size);

	ck_assert_ptr_nonnull(bytes);
	ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
	free(bytes);
	if (more > 0)
		OK(fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)size, (off_t)more));
	OK(fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* Returns the payload of the previous call if that was the same: many large ones cost one. */
static int payload_of(uint64_t size, int seals)
{
	static int fd = -1, its_seals;
	static uint64_t its_size;

	if (fd < 0 || its_size != size || its_seals != seals) {
		close_fd(&fd);
		fd = make_payload(size, 0, seals);
		its_size = size;
		its_seals = seals;
	}
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static struct msg_chunk make_chunk(uint64_t size, uint64_t file_size)
{
	struct msg_chunk m = {
		.h = MSG_HEADER(MSG_CHUNK),
		.for_server = true,
		.size = size,
		.file_size = file_size,
		.platform = "rust",
	};

	memset(m.chunk_id, 'a', sizeof(m.chunk_id) - 1);
	return m;
}

/* sizes: the sizes of the payloads whose descriptors are passed; 0: no descriptor. */
static int deliver(size_t instance, const struct msg_chunk *m, const uint64_t sizes[2], int seals)
{
	int fds[IPC_FDS_MAX] = {-1, -1, -1, -1}, r;

	for (size_t i = 0; i < 2; i++)
		if (sizes[i] > 0)
			fds[i] = payload_of(sizes[i], i == 1 ? seals : SEALS);
	r = delivery_chunk(&broker.modules.delivery, &instances[instance].delivery,
			   instances[instance].ship, instances[instance].config.platform, m, fds);
	for (size_t i = 0; i < 2; i++)
		close_fd(&fds[i]);
	return r;
}

static void fill_budget(size_t instance)
{
	instances[instance].delivery.full_ns = 0;
}

/* file_size: of the second payload; 0: none. */
static void add_payloads(size_t instance, uint64_t size, uint64_t file_size)
{
	const struct msg_chunk m = make_chunk(size, file_size);
	const uint64_t sizes[2] = {size, file_size};

	fill_budget(instance);
	OK(deliver(instance, &m, sizes, SEALS));
}

static void add_chunk(size_t instance, uint64_t size)
{
	add_payloads(instance, size, 0);
}

static uint64_t dropped(size_t instance)
{
	return instances[instance].delivery.chunks.discarded[DISCARD_QUEUE_OVERFLOW];
}

FIXTURE(set_up, NULL)

TEST(with_too_many_envelopes_the_instance_with_most_loses_some)
{
	for (int i = 0; i < 30; i++)
		add_chunk(1, SMALL);
	for (int i = 0; i < 600; i++)
		add_chunk(0, SMALL);
	for (int i = 0; i < 30; i++)
		add_chunk(1, SMALL);
	ck_assert_uint_eq(broker.modules.delivery.n_in_flight, 512);
	ck_assert_uint_eq(dropped(0), 660 - 512);
	ck_assert_uint_eq(dropped(1), 0);
	delivery_give_up(&broker.modules.delivery);
}

TEST(with_too_many_bytes_the_instance_with_most_loses_some)
{
	uint64_t waiting;

	add_chunk(1, SMALL);
	for (int i = 0; i < 100; i++)
		add_chunk(0, CHUNK_V2_SIZE_MAX);
	add_chunk(1, SMALL);
	/* Envelopes that the ship has do not count. */
	waiting = broker.modules.delivery.n_in_flight - ships[0].n_handed;
	ck_assert_uint_le(waiting * CHUNK_V2_SIZE_MAX, (UINT64_C(1) << 30) + CHUNK_V2_SIZE_MAX);
	ck_assert_uint_ge((waiting + 1) * CHUNK_V2_SIZE_MAX, UINT64_C(1) << 30);
	ck_assert_uint_eq(dropped(0), 102 - broker.modules.delivery.n_in_flight);
	ck_assert_uint_eq(dropped(1), 0);
	delivery_give_up(&broker.modules.delivery);
}

/* Opens a directory for files. */
static void open_output(void)
{
	OK(output_open(&broker.modules.delivery.output, suite_directory()));
}

TEST(payloads_for_files_count_as_waiting_bytes)
{
	uint64_t waiting;

	open_output();
	ships[0].n_handed = MSG_ENVELOPES_MAX;
	for (int i = 0; i < 100; i++)
		add_payloads(0, CHUNK_V2_SIZE_MAX, CHUNK_V2_SIZE_MAX);
	waiting = broker.modules.delivery.n_in_flight;
	ck_assert_uint_le((waiting - 1) * 2 * CHUNK_V2_SIZE_MAX, UINT64_C(1) << 30);
	ck_assert_uint_eq(dropped(0), 100 - waiting);
	delivery_give_up(&broker.modules.delivery);
	output_close(&broker.modules.delivery.output);
}

/* Delivers chunks until one is refused. Returns how many were taken. */
static size_t deliver_all(size_t instance, uint64_t size)
{
	const struct msg_chunk m = make_chunk(size, 0);
	const uint64_t sizes[2] = {size, 0};
	size_t n = 0;
	int r;

	while ((r = deliver(instance, &m, sizes, SEALS)) == 0 && n < 500)
		n++;
	ck_assert_int_eq(r, -EDQUOT);
	return n;
}

/* If chunk_seconds is 60: those of two minutes, and of a minute's lag. */
#define AT_ONCE 90u

TEST(chunks_beyond_the_budget_of_the_process_are_discarded)
{
	struct chunk_counts *chunks = &instances[0].delivery.chunks;

	broker.modules.state.options.config.chunk_seconds = 60;
	open_output();
	ck_assert_uint_eq(deliver_all(0, SMALL), AT_ONCE);
	ck_assert_uint_eq(chunks->discarded[DISCARD_CHUNK_BUDGET], 1);
	ck_assert_uint_eq(chunks->made, AT_ONCE + 1);
	ck_assert_uint_eq(chunks->not_written, 1);
	ck_assert_uint_eq(broker.modules.delivery.n_in_flight, AT_ONCE);
	/* The budget of another process is full. */
	ck_assert_uint_eq(deliver_all(1, SMALL), AT_ONCE);
	/* 30 chunks a minute. */
	instances[0].delivery.full_ns -= 20 * NS_PER_SEC;
	ck_assert_uint_eq(deliver_all(0, SMALL), 10);
	delivery_give_up(&broker.modules.delivery);
	output_close(&broker.modules.delivery.output);
}

TEST(the_budget_limits_bytes_too)
{
	broker.modules.state.options.config.chunk_seconds = 60;
	/* 180 s are in the bucket; 50 MB take 12 of them. */
	ck_assert_uint_eq(deliver_all(0, CHUNK_V2_SIZE_MAX), 15);
	fill_budget(0);
	broker.modules.state.options.config.chunk_seconds = 1;
	/* 62 s: the sixth chunk leaves a debt of 10 s. */
	ck_assert_uint_eq(deliver_all(0, CHUNK_V2_SIZE_MAX), 6);
	instances[0].delivery.full_ns -= 5 * NS_PER_SEC;
	ck_assert_uint_eq(deliver_all(0, SMALL), 0);
	delivery_give_up(&broker.modules.delivery);
}

/* Delivers a chunk whose only payload is fd. */
static int deliver_fd(int fd, uint64_t size)
{
	const struct msg_chunk m = make_chunk(size, 0);
	const int fds[IPC_FDS_MAX] = {fd, -1, -1, -1};

	return delivery_chunk(&broker.modules.delivery, &instances[0].delivery, instances[0].ship,
			      instances[0].config.platform, &m, fds);
}

/* One byte, and 60 MB behind it. */
TEST(pages_behind_the_end_of_a_payload_count)
{
	int fd = make_payload(1, BEHIND, SEALS);
	size_t n = 0;

	broker.modules.state.options.config.chunk_seconds = 60;
	/* 180 s are in the bucket; 60 MB take 15 of them. */
	while (deliver_fd(fd, 1) == 0 && n < 500)
		n++;
	ck_assert_uint_eq(n, 12);
	ck_assert_uint_eq(instances[0].delivery.chunks.discarded[DISCARD_CHUNK_BUDGET], 1);
	delivery_give_up(&broker.modules.delivery);
	/* No ship has the chunks: they wait. */
	ships[0].n_handed = MSG_ENVELOPES_MAX;
	for (int i = 0; i < 50; i++) {
		fill_budget(0);
		OK(deliver_fd(fd, 1));
	}
	ck_assert_uint_eq(broker.modules.delivery.n_in_flight, (1u << 30) / BEHIND);
	close_fd(&fd);
	delivery_give_up(&broker.modules.delivery);
}

/* The hole could get its pages later, when no budget counts them. */
TEST(a_payload_with_a_hole_is_discarded)
{
	int fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	OK(ftruncate(fd, SMALL));
	OK(fcntl(fd, F_ADD_SEALS, SEALS));
	ck_assert_int_eq(deliver_fd(fd, SMALL), -EDQUOT);
	ck_assert_uint_eq(instances[0].delivery.chunks.discarded[DISCARD_CHUNK_BUDGET], 1);
	ck_assert_uint_eq(broker.modules.delivery.n_in_flight, 0);
	close_fd(&fd);
}

/* Restarts ship n. Returns the process's end of the socket. */
static int new_process(size_t n)
{
	int fds[2];

	OK(ipc_pair(fds));
	close_fd(&ships[n].child.fd);
	ships[n].child.fd = fds[0];
	ships[n].child.pid = getpid();
	OK(fcntl(fds[0], F_SETFL, O_NONBLOCK));
	OK(fcntl(fds[1], F_SETFL, O_NONBLOCK));
	return fds[1];
}

/* Receives the next message to the ship, of this type and size. */
static void receive(int ship, uint32_t type, void *ret, size_t size)
{
	struct ipc_message m;

	ck_assert_int_eq(ipc_recv(ship, &m), 1);
	ck_assert_uint_eq(msg_type_of(&m), type);
	ck_assert_uint_eq(m.size, size);
	memcpy(ret, m.bytes, size);
	ipc_close_fds(&m);
}

/* Receives an envelope. size, file_size: of its payloads, 0 for none. */
static void receive_payloads(int ship, bool to_server, uint64_t size, uint64_t file_size)
{
	const struct msg_envelope *e;
	struct ipc_message m;

	ck_assert_int_eq(ipc_recv(ship, &m), 1);
	ck_assert_uint_eq(msg_type_of(&m), MSG_ENVELOPE);
	e = (const void *)m.bytes;
	ck_assert(e->to_server == to_server && e->to_file);
	ck_assert_uint_eq(e->size, size);
	ck_assert_uint_eq(e->file_size, file_size);
	ck_assert_uint_eq(m.n_fds, file_size > 0 ? 3 : 2);
	ck_assert_int_eq(lseek(m.fds[0], 0, SEEK_END), (off_t)size);
	if (file_size > 0)
		ck_assert_int_eq(lseek(m.fds[2], 0, SEEK_END), (off_t)file_size);
	ipc_close_fds(&m);
}

static void assert_no_more(int ship)
{
	struct ipc_message m;

	ck_assert_int_eq(ipc_recv(ship, &m), -EAGAIN);
}

TEST(a_ship_restarted_before_the_deadline_gets_the_time_left)
{
	const uint64_t hour_ns = 3600 * NS_PER_SEC;
	struct msg_number finish;
	struct msg_envelope envelope;
	int ship = new_process(0);

	add_chunk(0, SMALL);
	receive(ship, MSG_ENVELOPE, &envelope, sizeof(envelope));
	delivery_finish(&broker.modules.delivery, hour_ns);
	receive(ship, MSG_SHIP_FINISH, &finish, sizeof(finish));
	close_fd(&ship);
	ship = new_process(0);
	delivery_resend(&broker.modules.delivery, &ships[0]);
	receive(ship, MSG_ENVELOPE, &envelope, sizeof(envelope));
	receive(ship, MSG_SHIP_FINISH, &finish, sizeof(finish));
	/* What is left of the timeout. */
	ck_assert_uint_gt(finish.n, 0);
	ck_assert_uint_lt(finish.n, hour_ns);
	assert_no_more(ship);
	close_fd(&ship);
	delivery_give_up(&broker.modules.delivery);
}

TEST(the_payload_for_a_file_is_passed_until_it_is_written)
{
	struct msg_envelope_written written = {
		.h = MSG_HEADER(MSG_ENVELOPE_WRITTEN),
		.seq = 1,
		.error = EIO,
	};
	struct msg_envelope envelope;
	int ship = new_process(0);

	open_output();
	add_payloads(0, SMALL, SMALL + 1);
	receive_payloads(ship, true, SMALL, SMALL + 1);
	/* A restarted ship gets both, too. */
	close_fd(&ship);
	ship = new_process(0);
	delivery_resend(&broker.modules.delivery, &ships[0]);
	receive_payloads(ship, true, SMALL, SMALL + 1);
	delivery_written(&broker.modules.delivery, &ships[0], &written);
	close_fd(&ship);
	ship = new_process(0);
	delivery_resend(&broker.modules.delivery, &ships[0]);
	receive(ship, MSG_ENVELOPE, &envelope, sizeof(envelope));
	ck_assert(!envelope.to_file && envelope.to_server);
	ck_assert_uint_eq(envelope.file_size, 0);
	/* Without a second payload, the file gets the payload for the server. */
	add_chunk(0, SMALL);
	receive_payloads(ship, true, SMALL, 0);
	close_fd(&ship);
	delivery_give_up(&broker.modules.delivery);
	output_close(&broker.modules.delivery.output);
}

/* The chunk may go into files only (for_server is false), though the ship has a DSN. */
TEST(a_chunk_for_files_only_is_not_sent_to_the_server)
{
	struct msg_chunk m = make_chunk(SMALL, 0);
	const uint64_t sizes[2] = {SMALL, 0};
	int ship = new_process(0);

	open_output();
	m.for_server = false;
	OK(deliver(0, &m, sizes, SEALS));
	receive_payloads(ship, false, SMALL, 0);
	close_fd(&ship);
	delivery_give_up(&broker.modules.delivery);
	output_close(&broker.modules.delivery.output);
}

/* Such a chunk would be made, and neither sent, written nor lost. */
TEST(a_chunk_for_no_receiver_is_refused)
{
	struct msg_chunk m = make_chunk(SMALL, 0);
	const uint64_t sizes[2] = {SMALL, 0};

	m.for_server = false;
	ck_assert_int_eq(deliver(0, &m, sizes, SEALS), -EPROTO);
	ck_assert_uint_eq(instances[0].delivery.chunks.made, 0);
}

TEST(payloads_that_differ_from_their_message_are_refused)
{
	const uint64_t both[2] = {SMALL, SMALL}, one[2] = {SMALL, 0};
	struct msg_chunk m = make_chunk(SMALL, SMALL);

	/* No files are written. */
	ck_assert_int_eq(deliver(0, &m, both, SEALS), -EPROTO);
	open_output();
	ck_assert_int_eq(deliver(0, &m, one, SEALS), -EPROTO);
	ck_assert_int_eq(deliver(0, &m, both, SEALS & ~F_SEAL_WRITE), -EPROTO);
	m.file_size++;
	ck_assert_int_eq(deliver(0, &m, both, SEALS), -EPROTO);
	m.file_size = 0;
	ck_assert_int_eq(deliver(0, &m, both, SEALS), -EPROTO);
	/* A V1 profile has one payload. */
	m.file_size = SMALL;
	m.transaction_size = 1;
	ck_assert_int_eq(deliver(0, &m, both, SEALS), -EPROTO);
	m.transaction_size = 0;
	OK(deliver(0, &m, both, SEALS));
	delivery_give_up(&broker.modules.delivery);
	output_close(&broker.modules.delivery.output);
}

/* Bytes after the NUL of the platform in a chunk's message are not passed to the ship. */
TEST(bytes_after_the_platform_are_not_passed_to_the_ship)
{
	const uint64_t sizes[2] = {SMALL, 0};
	struct msg_chunk m = make_chunk(SMALL, 0);
	struct msg_envelope envelope;
	int server = new_process(0);

	memset(m.platform + sizeof("rust"), 'x', sizeof(m.platform) - sizeof("rust"));
	OK(deliver(0, &m, sizes, SEALS));
	receive(server, MSG_ENVELOPE, &envelope, sizeof(envelope));
	ck_assert_mem_eq(envelope.platform, instances[0].config.platform,
			 sizeof(envelope.platform));
	close_fd(&server);
	delivery_give_up(&broker.modules.delivery);
}

TEST(only_spotlight_gets_the_anchor)
{
	const uint64_t sizes[2] = {SMALL, SMALL / 2};
	struct msg_chunk m = make_chunk(SMALL, 0);
	struct msg_envelope envelope;
	struct ipc_message message;
	int server = new_process(0), spotlight = new_process(1);

	m.anchor_size = SMALL / 2;
	/* Spotlight is off. */
	ck_assert_int_eq(deliver(0, &m, sizes, SEALS), -EPROTO);
	ships[1].is_spotlight = true;
	broker.modules.children.spotlight = &ships[1];
	ck_assert_int_eq(deliver(0, &m, sizes, SEALS & ~F_SEAL_WRITE), -EPROTO);
	m.anchor_size++;
	ck_assert_int_eq(deliver(0, &m, sizes, SEALS), -EPROTO);
	m.anchor_size--;
	/* A V1 profile has no anchor. */
	m.transaction_size = 1;
	ck_assert_int_eq(deliver(0, &m, sizes, SEALS), -EPROTO);
	m.transaction_size = 0;
	OK(deliver(0, &m, sizes, SEALS));
	receive(server, MSG_ENVELOPE, &envelope, sizeof(envelope));
	ck_assert_uint_eq(envelope.size, SMALL);
	ck_assert_uint_eq(envelope.anchor_size, 0);
	ck_assert_int_eq(ipc_recv(spotlight, &message), 1);
	ck_assert_uint_eq(msg_type_of(&message), MSG_ENVELOPE);
	memcpy(&envelope, message.bytes, sizeof(envelope));
	ck_assert_uint_eq(envelope.size, SMALL);
	ck_assert_uint_eq(envelope.anchor_size, SMALL / 2);
	ck_assert_uint_eq(message.n_fds, 2);
	ck_assert_int_eq(lseek(message.fds[1], 0, SEEK_END), SMALL / 2);
	ipc_close_fds(&message);
	close_fd(&server);
	close_fd(&spotlight);
	delivery_give_up(&broker.modules.delivery);
}

TEST(without_a_deadline_a_restarted_ship_gets_none)
{
	int ship = new_process(0);

	delivery_resend(&broker.modules.delivery, &ships[0]);
	assert_no_more(ship);
	close_fd(&ship);
}

TEST(losses_are_reported_to_the_ship)
{
	struct msg_lost lost;
	int ship;

	/* The ship has no process yet. */
	delivery_lost(&instances[0].delivery, instances[0].ship, DISCARD_TOO_LARGE);
	delivery_lost(&instances[0].delivery, instances[0].ship, DISCARD_UNWIND_DIED);
	ship = new_process(0);
	delivery_resend(&broker.modules.delivery, &ships[0]);
	receive(ship, MSG_LOST, &lost, sizeof(lost));
	ck_assert_uint_eq(lost.reason, CLIENT_REPORT_INTERNAL_SDK_ERROR);
	ck_assert_uint_eq(lost.quantity, 2);
	delivery_lost(&instances[1].delivery, instances[1].ship, PROFILE_NO_SAMPLES);
	receive(ship, MSG_LOST, &lost, sizeof(lost));
	ck_assert_uint_eq(lost.reason, CLIENT_REPORT_INSUFFICIENT_DATA);
	ck_assert_uint_eq(lost.quantity, 1);
	ck_assert_uint_eq(lost.kind, ENVELOPE_CHUNK);
	delivery_lost(&instances[1].delivery, instances[1].ship, DISCARD_EXEC_BUDGET);
	receive(ship, MSG_LOST, &lost, sizeof(lost));
	ck_assert_uint_eq(lost.reason, CLIENT_REPORT_BACKPRESSURE);
	ck_assert_uint_eq(lost.quantity, 1);
	assert_no_more(ship);
	broker.modules.state.options.transaction = "nightly";
	delivery_lost(&instances[1].delivery, instances[1].ship, DISCARD_QUEUE_OVERFLOW);
	receive(ship, MSG_LOST, &lost, sizeof(lost));
	ck_assert_uint_eq(lost.kind, ENVELOPE_V1);
	ck_assert_uint_eq(lost.reason, CLIENT_REPORT_QUEUE_OVERFLOW);
	ck_assert_uint_eq(lost.quantity, 1);
	assert_no_more(ship);
	/* Without a server no loss is reported. */
	ships[0].dsn[0] = '\0';
	delivery_lost(&instances[1].delivery, instances[1].ship, PROFILE_NO_SAMPLES);
	assert_no_more(ship);
	ck_assert_uint_eq(instances[1].delivery.chunks.discarded[PROFILE_NO_SAMPLES], 2);
	close_fd(&ship);
}

TEST(losses_while_the_ship_works_are_reported_after_its_answer)
{
	struct msg_envelope_done done = {.h = MSG_HEADER(MSG_ENVELOPE_DONE), .result = SHIP_DONE};
	struct msg_envelope envelope;
	struct msg_lost lost;
	int ship = new_process(0);

	add_chunk(0, SMALL);
	receive(ship, MSG_ENVELOPE, &envelope, sizeof(envelope));
	for (int i = 0; i < 1000; i++)
		delivery_lost(&instances[0].delivery, &ships[0], DISCARD_QUEUE_OVERFLOW);
	assert_no_more(ship);
	done.seq = envelope.seq;
	delivery_done(&broker.modules.delivery, &ships[0], &done);
	receive(ship, MSG_LOST, &lost, sizeof(lost));
	ck_assert_uint_eq(lost.quantity, 1000);
	assert_no_more(ship);
	close_fd(&ship);
}

/* The instance has another DSN now; its chunk was made for the previous DSN. */
TEST(a_loss_is_reported_to_the_ship_that_the_chunk_was_for)
{
	const enum client_report_reason reason = CLIENT_REPORT_INTERNAL_SDK_ERROR;

	/* The ship has MSG_ENVELOPES_MAX envelopes, so this one waits. */
	ships[0].n_handed = MSG_ENVELOPES_MAX;
	add_chunk(0, SMALL);
	instances[0].ship = &ships[1];
	for (int i = 0; i < MSG_ENVELOPES_MAX; i++)
		add_chunk(0, SMALL);
	delivery_give_up(&broker.modules.delivery);
	ck_assert_uint_eq(ships[0].unreported.quantity[ENVELOPE_CHUNK][reason], 1);
	ck_assert_uint_eq(ships[1].unreported.quantity[ENVELOPE_CHUNK][reason], MSG_ENVELOPES_MAX);
	ck_assert_uint_eq(instances[0].delivery.n_envelopes, 0);
}

/* A finished envelope is not in flight, but exists until the end of the turn. */
TEST(finished_envelopes_are_freed_by_the_sweep)
{
	add_chunk(0, SMALL);
	ck_assert(ships[0].n_in_flight > 0);
	for (int i = 0; i < 600; i++)
		add_chunk(1, SMALL);
	/* The oldest envelopes of the instance with the most bytes are dropped, but not freed. */
	ck_assert_uint_eq(broker.modules.delivery.n_in_flight, 512);
	ck_assert_uint_eq(instances[1].delivery.n_envelopes, 600);
	delivery_sweep(&broker.modules.delivery);
	ck_assert_uint_eq(instances[1].delivery.n_envelopes, 511);
	ck_assert_uint_eq(instances[0].delivery.n_envelopes, 1);
	delivery_give_up(&broker.modules.delivery);
	ck_assert(ships[0].n_in_flight == 0);
	ck_assert_ptr_null(broker.modules.delivery.envelopes);
}

TEST(a_slow_server_delays_its_own_chunks_only)
{
	struct msg_envelope envelope;
	int fds[2] = {new_process(0), new_process(1)};

	instances[1].ship = &ships[1];
	for (size_t i = 0; i < MSG_ENVELOPES_MAX + 1; i++)
		add_chunk(0, SMALL);
	for (size_t i = 0; i < MSG_ENVELOPES_MAX; i++)
		receive(fds[0], MSG_ENVELOPE, &envelope, sizeof(envelope));
	assert_no_more(fds[0]);
	add_chunk(1, SMALL);
	receive(fds[1], MSG_ENVELOPE, &envelope, sizeof(envelope));
	/* A restarted ship gets its own chunks only. */
	delivery_resend(&broker.modules.delivery, &ships[1]);
	receive(fds[1], MSG_ENVELOPE, &envelope, sizeof(envelope));
	assert_no_more(fds[1]);
	assert_no_more(fds[0]);
	for (size_t i = 0; i < 2; i++)
		close_fd(&fds[i]);
	delivery_give_up(&broker.modules.delivery);
}
