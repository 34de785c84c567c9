/*
 * The order in which envelopes are sent, and the results and reports of those that are not: with a
 * spool, and over HTTP to a server on loopback. The pauses between envelopes of the spool and the
 * backoff are set to zero.
 */
#include "daemon/ship/outbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/random.h"
#include "daemon/msg/discard.h"
#include "daemon/msg/msg_unwind.h"
#include "lib/base/clock.h"
#include "tests/unit/daemon/sink.h"
#include "tests/unit/suite.h"

/* Sanitizers are slow and need memory of their own. */
#ifdef __SANITIZE_ADDRESS__
#define MANY 1000
#else
#define MANY 10000
#endif
/* Bytes of a small spool. */
#define SMALL	      4096
#define RSS_MAX_BYTES (UINT64_C(32) << 20)

/* The spool is in memory, since the tests make and remove thousands of files a second. */
static char path[] = "/dev/shm/check_outbox.XXXXXX";
static int dir;
static struct sink sink;
static struct transport *transport;
static struct outbox outbox;
static struct dsn dsn;
static unsigned int results[DISCARD_N];

static void on_done(struct queue_item *item, uint32_t result)
{
	results[result]++;
	queue_item_free(item);
}

static void open_spool_with(const struct spool_limits *limits)
{
	OK(spooler_open(&outbox.spooler, dsn_hash(&dsn), limits, dir));
}

static void open_spool(size_t count)
{
	open_spool_with(&(const struct spool_limits){.count = count});
}

static void set_up(void)
{
	const struct transport_options options = {
		.client = "name/1.2.3",
		.connect_timeout_ms = 60000,
		.total_timeout_ms = 60000,
		.cpu_ns = clock_cpu_ns,
	};
	char text[64];

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	memcpy(path + strlen(path) - 6, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	sink_init(&sink, text, sizeof(text));
	ck_assert_int_eq(dsn_parse(&dsn, text), DSN_OK);
	OK(transport_new(&transport, &options));
	outbox_init(&outbox, transport, on_done);
	outbox_set_dsn(&outbox, &dsn, 0, 0);
	memset(results, 0, sizeof(results));
}

static void tear_down(void)
{
	DIR *names = opendir(path);
	struct dirent *entry;

	outbox_fini(&outbox);
	transport_free(transport);
	sink_end(&sink);
	ck_assert_ptr_nonnull(names);
	while ((entry = readdir(names)) != NULL)
		(void)unlinkat(dir, entry->d_name, 0);
	(void)closedir(names);
	close_fd(&dir);
	(void)rmdir(path);
}

static void add_bytes(enum envelope_kind kind, unsigned int n, const void *payload, size_t size)
{
	struct queue_item *item = calloc(1, sizeof(*item));
	int fd = memfd_create("payload", MFD_CLOEXEC);

	ck_assert_ptr_nonnull(item);
	OK(write_all(fd, payload, size));
	(void)snprintf(item->chunk_id, sizeof(item->chunk_id), "%032x", n);
	memcpy(item->platform, "rust", sizeof("rust"));
	item->package = (struct package){
		.sdk_name = "name",
		.sdk_version = "1.2.3",
		.platform = item->platform,
		.payload_fd = fd,
		.payload_size = size,
		.transaction_size = kind == ENVELOPE_V1 ? 7 : 0,
	};
	OK(spool_id_parse(item->chunk_id, item->package.event_id));
	outbox_add(&outbox, item);
}

/* Adds an envelope whose chunk id and event id are n. */
static void add(enum envelope_kind kind, unsigned int n)
{
	static const char payload[] = "{\"a\":1}{\"platform\":\"rust\"}";

	add_bytes(kind, n, payload, sizeof(payload) - 1);
}

/* Adds a chunk that does not fit into a spool of SMALL bytes. */
static void add_large(unsigned int n)
{
	uint8_t payload[2 * SMALL];

	/* Random bytes do not become fewer by compression. */
	for (size_t i = 0; i < sizeof(payload); i += 256)
		random_bytes(payload + i, 256);
	add_bytes(ENVELOPE_CHUNK, n, payload, sizeof(payload));
}

/* A turn of ship's loop, without the pause between envelopes of the spool. */
static void turn(void)
{
	bool ignored;

	outbox.spooler.next_ns = 0;
	outbox_step(&outbox);
	if (transport_busy(transport))
		OK(transport_wait(transport, -1, 1000, &ignored));
}

static void turn_until_idle(void)
{
	do
		turn();
	while (transport_busy(transport));
}

static size_t spooled(void)
{
	return spool_count(outbox.spooler.spool);
}

/* Adds an envelope while nothing listens, and waits until it is in the spool. */
static void spool(enum envelope_kind kind, unsigned int n)
{
	const size_t before = spooled();

	add(kind, n);
	while (spooled() == before)
		turn();
}

/* Starts the server and ends the backoff. */
static void bring_up(void)
{
	/* A request in flight still fails. */
	while (transport_busy(transport))
		turn();
	sink_up(&sink);
	retry_succeeded(&outbox.destination.retry);
}

static unsigned int arrived(unsigned int at)
{
	ck_assert_uint_lt(at, sink_n(&sink));
	return (unsigned int)strtoul(sink.shared->arrivals[at].event_id, NULL, 16);
}

static uint64_t lost(enum envelope_kind kind, enum client_report_reason reason)
{
	return outbox.destination.reports.counted.quantity[kind][reason];
}

/* Checks the peak of this process's resident memory. */
static void check_rss(void)
{
#ifndef __SANITIZE_ADDRESS__
	uint64_t kb = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "r");

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmHWM: %lu kB", &kb) == 1)
			break;
	(void)fclose(f);
	ck_assert_uint_gt(kb, 0);
	ck_assert_uint_lt(kb * 1024, RSS_MAX_BYTES);
#endif
}

FIXTURE(set_up, tear_down)

TEST(ten_thousand_envelopes_pass_through_the_spool)
{
	static uint8_t times[MANY];

	open_spool(0);
	for (unsigned int n = 0; n < MANY; n++)
		spool(ENVELOPE_CHUNK, n);
	ck_assert_uint_eq(spooled(), MANY);
	ck_assert_uint_eq(results[SHIP_SPOOLED], MANY);
	bring_up();
	while (spooled() > 0)
		turn();
	ck_assert_uint_eq(sink_n(&sink), MANY);
	for (unsigned int n = 0; n < MANY; n++)
		times[arrived(n)]++;
	for (unsigned int n = 0; n < MANY; n++)
		ck_assert_uint_eq(times[n], 1);
	ck_assert_uint_eq(outbox.spooler.counts.sent, MANY);
	ck_assert(client_report_is_empty(&outbox.destination.reports.counted));
	ck_assert_uint_eq(atomic_load(&sink.shared->connections), 1);
	check_rss();
}

/* A new envelope is sent before all of the spool, but for the request in flight. */
TEST(new_envelopes_go_before_those_of_the_spool)
{
	unsigned int before, old = 0;

	open_spool(0);
	for (; old < 100; old++)
		spool(ENVELOPE_CHUNK, old);
	bring_up();
	for (unsigned int n = 1000; n < 1010; n++) {
		before = sink_n(&sink);
		while (sink_n(&sink) < before + 3)
			turn();
		before = sink_n(&sink);
		add(ENVELOPE_CHUNK, n);
		while (results[SHIP_DONE] < n - 1000 + 1)
			turn();
		ck_assert(arrived(before) == n || arrived(before + 1) == n);
	}
	/* Then the spool goes on. */
	while (spooled() > 0)
		turn();
	ck_assert_uint_eq(sink_n(&sink), old + 10);
}

static const char *const v1_categories[] = {"transaction", "span", "profile"};

/* An envelope is held back by limits on its own categories. */
TESTS(a_limit_of_v1_holds_back_v1_envelopes_only, array_size(v1_categories))
{
	open_spool(0);
	spool(ENVELOPE_V1, 1);
	spool(ENVELOPE_CHUNK, 2);
	(void)snprintf(sink.answers[0], sizeof(sink.answers[0]),
		       "200 OK\r\nX-Sentry-Rate-Limits: 3600:%s:key\r\n", v1_categories[_i]);
	bring_up();
	add(ENVELOPE_CHUNK, 3);
	turn_until_idle();
	ck_assert_uint_eq(sink_n(&sink), 2);
	ck_assert_uint_eq(arrived(0), 3);
	ck_assert_uint_eq(arrived(1), 2);
	ck_assert_uint_eq(spooled(), 1);
	/* A new envelope is lost. */
	add(ENVELOPE_V1, 4);
	turn_until_idle();
	ck_assert_uint_eq(results[DISCARD_RATE_LIMITED], 1);
	ck_assert_uint_eq(lost(ENVELOPE_V1, CLIENT_REPORT_RATELIMIT_BACKOFF), 1);
	/* The limit of an hour does not make the loop spin. */
	ck_assert_int_gt(outbox_wait_ms(&outbox), 1000);
}

TEST(a_limit_of_chunks_holds_back_chunks_only)
{
	open_spool(0);
	spool(ENVELOPE_CHUNK, 1);
	spool(ENVELOPE_V1, 2);
	(void)snprintf(sink.answers[0], sizeof(sink.answers[0]),
		       "200 OK\r\nX-Sentry-Rate-Limits: "
		       "3600:profile_chunk:key\r\n");
	bring_up();
	add(ENVELOPE_CHUNK, 3);
	turn_until_idle();
	ck_assert_uint_eq(sink_n(&sink), 2);
	ck_assert_uint_eq(arrived(1), 2);
	ck_assert(sink.shared->arrivals[1].is_v1);
	ck_assert_uint_eq(spooled(), 1);
}

/* Every loss is counted for the kind of its envelope, and for no other. */
TESTS(losses_are_counted_by_kind, ENVELOPE_KIND_N)
{
	const enum envelope_kind kind = (enum envelope_kind)_i;
	const enum envelope_kind other = kind == ENVELOPE_CHUNK ? ENVELOPE_V1 : ENVELOPE_CHUNK;

	/* The queue is full, and there is no spool. */
	for (unsigned int n = 0; n < QUEUE_MAX + 1; n++)
		add(kind, n);
	ck_assert_uint_eq(lost(kind, CLIENT_REPORT_QUEUE_OVERFLOW), 1);
	outbox_set_deadline(&outbox, 0);
	outbox_step(&outbox);
	ck_assert_uint_eq(lost(kind, CLIENT_REPORT_NETWORK_ERROR), QUEUE_MAX);
	outbox.deadline_ns = 0;

	open_spool(2);
	for (unsigned int n = 100; n < 103; n++) {
		add(kind, n);
		turn_until_idle();
	}
	ck_assert_uint_eq(lost(kind, CLIENT_REPORT_CACHE_OVERFLOW), 1);
	for (unsigned int n = 0; n < 3; n++)
		(void)snprintf(sink.answers[n], sizeof(sink.answers[n]), "400 Bad Request\r\n");
	bring_up();
	add(kind, 200);
	while (spooled() > 0)
		turn();
	ck_assert_uint_eq(sink_n(&sink), 3);
	ck_assert_uint_eq(lost(kind, CLIENT_REPORT_SEND_ERROR), 3);
	for (int i = 0; i < CLIENT_REPORT_REASON_N; i++)
		ck_assert_uint_eq(lost(other, (enum client_report_reason)i), 0);
}

static unsigned int probes;

static void count_probe(const struct transport_answer *a)
{
	ck_assert_int_eq(a->status, 403);
	probes++;
}

/* A server that refuses the DSN gets probes, and no envelope, until it accepts one. */
TEST(envelopes_wait_while_the_server_refuses_the_dsn)
{
	open_spool(0);
	spool(ENVELOPE_CHUNK, 1);
	for (unsigned int n = 0; n < 3; n++)
		(void)snprintf(sink.answers[n], sizeof(sink.answers[n]), "403 Forbidden\r\n");
	bring_up();
	while (outbox.destination.denial == 0)
		turn();
	outbox_count_lost(&outbox, ENVELOPE_CHUNK, CLIENT_REPORT_SEND_ERROR, 1);
	outbox.destination.reports.last_ns = 0;
	/* The wait after a denial is not over. */
	outbox.destination.retry.until_ns = clock_boot_ns() + 3600 * NS_PER_SEC;
	add(ENVELOPE_CHUNK, 2);
	turn_until_idle();
	ck_assert_uint_eq(sink_n(&sink), 1);
	ck_assert_uint_eq(spooled(), 2);
	ck_assert_int_gt(outbox_wait_ms(&outbox), 1000);
	/* doctor does not wait. */
	outbox_probe(&outbox, count_probe);
	while (probes == 0)
		turn();
	while (spooled() > 0) {
		outbox.destination.retry.until_ns = 0;
		ck_assert_int_eq(transport_busy(transport) || outbox_wait_ms(&outbox) <= 1000, 1);
		turn();
	}
	/* Denied: envelope 1, and two probes. Accepted: a probe, the report, the envelopes. */
	ck_assert_uint_eq(arrived(0), 1);
	for (unsigned int n = 1; n <= 4; n++)
		ck_assert(arrived(n) != 1 && arrived(n) != 2);
	ck_assert(sink.shared->arrivals[4].has_report);
	ck_assert_uint_eq(arrived(5), 1);
	ck_assert_uint_eq(lost(ENVELOPE_CHUNK, CLIENT_REPORT_CACHE_OVERFLOW), 0);
	ck_assert_uint_eq(outbox.spooler.counts.refused, 0);
}

/* Without a spool they are lost at the end, for this reason. */
TEST(envelopes_that_wait_for_a_denial_are_refused_at_the_end)
{
	for (unsigned int n = 0; n < SINK_ANSWERS_MAX; n++)
		(void)snprintf(sink.answers[n], sizeof(sink.answers[n]), "401 Unauthorized\r\n");
	bring_up();
	add(ENVELOPE_CHUNK, 1);
	add(ENVELOPE_CHUNK, 2);
	while (outbox.destination.denial == 0)
		turn();
	ck_assert_uint_eq(outbox.queue.n, 2);
	outbox_set_deadline(&outbox, 3600 * NS_PER_SEC);
	turn_until_idle();
	ck_assert_uint_eq(results[DISCARD_SEND_ERROR], 2);
}

/* Without a spool: a proxy may refuse the contents of this one. */
TEST(an_item_that_gets_no_answer_does_not_hold_back_the_others)
{
	outbox.destination.retry_5xx = true;
	(void)snprintf(sink.answers[0], sizeof(sink.answers[0]), "504 Gateway Timeout\r\n");
	bring_up();
	add(ENVELOPE_CHUNK, 1);
	add(ENVELOPE_CHUNK, 2);
	while (sink_n(&sink) < 2) {
		outbox.destination.retry.until_ns = 0;
		turn();
	}
	ck_assert_uint_eq(arrived(0), 1);
	ck_assert_uint_eq(arrived(1), 2);
}

/* Envelopes that do not fit into the queue are counted as lost. */
TEST(envelopes_wait_in_memory_while_the_disk_fails)
{
	const unsigned int n = QUEUE_MAX + 10;

	open_spool(0);
	OK(rmdir(path));
	add(ENVELOPE_CHUNK, 0);
	turn_until_idle();
	ck_assert_uint_gt(outbox.spooler.disk_retry_ns, 0);
	for (unsigned int i = 1; i < n; i++) {
		add(ENVELOPE_CHUNK, i);
		turn_until_idle();
	}
	ck_assert_uint_eq(outbox.queue.n, QUEUE_MAX);
	ck_assert_uint_eq(results[DISCARD_QUEUE_OVERFLOW], n - QUEUE_MAX);
	ck_assert_uint_eq(lost(ENVELOPE_CHUNK, CLIENT_REPORT_QUEUE_OVERFLOW), n - QUEUE_MAX);
	ck_assert_uint_eq(results[SHIP_SPOOLED], 0);
	bring_up();
	while (results[SHIP_DONE] < QUEUE_MAX)
		turn();
	/* The newest envelopes are left, and are sent oldest first. */
	for (unsigned int i = 0; i < QUEUE_MAX; i++)
		ck_assert_uint_eq(arrived(i), n - QUEUE_MAX + i);
	OK(mkdir(path, 0700));
}

/* During the outage, and at the end. */
TESTS(a_chunk_that_is_too_large_does_not_keep_others_out_of_the_spool, 2)
{
	open_spool_with(&(const struct spool_limits){.bytes = SMALL});
	add_large(1);
	add(ENVELOPE_CHUNK, 2);
	add_large(3);
	add(ENVELOPE_CHUNK, 4);
	if (_i == 0) {
		turn_until_idle();
		ck_assert_uint_eq(spooled(), 2);
		ck_assert_uint_eq(outbox.queue.n, 2);
	}
	outbox_set_deadline(&outbox, 0);
	outbox_step(&outbox);
	ck_assert_uint_eq(results[SHIP_SPOOLED], 2);
	ck_assert_uint_eq(results[DISCARD_NETWORK_ERROR], 2);
}

/* The disk has room for the second one. */
TEST(a_disk_without_room_for_one_chunk_gets_the_others_at_the_end)
{
	const struct rlimit limit = {.rlim_cur = SMALL, .rlim_max = RLIM_INFINITY};

	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	open_spool(0);
	add_large(1);
	add(ENVELOPE_CHUNK, 2);
	OK(setrlimit(RLIMIT_FSIZE, &limit));
	outbox_set_deadline(&outbox, 0);
	outbox_step(&outbox);
	ck_assert_uint_eq(results[SHIP_SPOOLED], 1);
	ck_assert_uint_eq(results[DISCARD_NETWORK_ERROR], 1);
}

/* A report that the server refused is sent again with the next envelope. */
TEST(a_refused_report_is_sent_again)
{
	(void)snprintf(sink.answers[0], sizeof(sink.answers[0]), "500 Internal Server Error\r\n");
	(void)snprintf(sink.answers[1], sizeof(sink.answers[1]),
		       "429 Too Many Requests\r\nX-Sentry-Rate-Limits: "
		       "60:error:key\r\n");
	bring_up();
	outbox_count_lost(&outbox, ENVELOPE_CHUNK, CLIENT_REPORT_INSUFFICIENT_DATA, 3);
	for (unsigned int n = 0; n < 3; n++) {
		/* Makes the report due: half a minute has passed since the last one. */
		outbox.destination.reports.last_ns = 0;
		add(ENVELOPE_CHUNK, n);
		turn_until_idle();
		ck_assert_uint_eq(sink_n(&sink), n + 1);
		ck_assert(sink.shared->arrivals[n].has_report == (n < 2));
	}
	/* The losses are reported: the three, and the chunk that was refused with the first report.
	 */
	ck_assert(client_report_is_empty(&outbox.destination.reports.counted));
}

/* A report that is never sent does not make the loop spin. */
TEST(no_report_is_due_if_reports_are_turned_off)
{
	outbox.destination.no_reports = true;
	outbox_count_lost(&outbox, ENVELOPE_CHUNK, CLIENT_REPORT_NETWORK_ERROR, 1);
	/* Makes the report due: a minute has passed since the last one. */
	outbox.destination.reports.last_ns = 0;
	outbox_step(&outbox);
	ck_assert_int_eq(outbox_wait_ms(&outbox), -1);
	outbox_close(&outbox, NS_PER_SEC);
	ck_assert(outbox_is_empty(&outbox));
}

static struct transport_answer probed;
static unsigned int n_probed;

static void on_probed(const struct transport_answer *answer)
{
	probed = *answer;
	n_probed++;
}

/* The probe is sent between two chunks, on the same connection. */
TEST(a_probe_waits_for_the_request_in_flight)
{
	n_probed = 0;
	bring_up();
	add(ENVELOPE_CHUNK, 1);
	turn();
	ck_assert(transport_busy(transport));
	add(ENVELOPE_CHUNK, 2);
	outbox_probe(&outbox, on_probed);
	while (results[SHIP_DONE] < 2)
		turn();
	ck_assert_uint_eq(n_probed, 1);
	ck_assert_int_eq(probed.status, 200);
	ck_assert_uint_eq(sink_n(&sink), 3);
	ck_assert_uint_eq(arrived(0), 1);
	ck_assert(sink.shared->arrivals[1].has_report);
	ck_assert_uint_eq(arrived(2), 2);
	ck_assert_uint_eq(sink.shared->connections, 1);
}

/* No process listens; or the server has set a limit on everything, and gets no request. */
TEST(a_probe_ends_even_without_an_answer)
{
	n_probed = 0;
	outbox_probe(&outbox, on_probed);
	turn_until_idle();
	ck_assert_uint_eq(n_probed, 1);
	ck_assert_int_eq(probed.status, 0);
	ck_assert_int_eq(probed.fault, TRANSPORT_FAULT_CONNECT);
	rate_limit_extend(&outbox.destination.limits, RATE_LIMIT_ALL, UINT64_MAX);
	outbox_probe(&outbox, on_probed);
	turn_until_idle();
	ck_assert_uint_eq(n_probed, 2);
	ck_assert_int_eq(probed.status, 429);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

TEST(items_that_are_left_at_the_end_are_freed_without_a_result)
{
	int sending_fd, waiting_fd;

	bring_up();
	add(ENVELOPE_CHUNK, 1);
	outbox_step(&outbox);
	add(ENVELOPE_CHUNK, 2);
	ck_assert_ptr_nonnull(outbox.current);
	ck_assert_uint_eq(outbox.queue.n, 1);
	sending_fd = outbox.current->package.payload_fd;
	waiting_fd = outbox.queue.items[0]->package.payload_fd;
	ck_assert(is_open(sending_fd) && is_open(waiting_fd));
	outbox_fini(&outbox);
	ck_assert(!is_open(sending_fd) && !is_open(waiting_fd));
	for (size_t i = 0; i < array_size(results); i++)
		ck_assert_uint_eq(results[i], 0);
}
