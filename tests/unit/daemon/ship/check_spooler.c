/*
 * The pauses between envelopes of the spool, the counts of lost envelopes, and a disk that cannot
 * be written.
 */
#include "daemon/ship/spooler.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/ship/retry.h"
#include "tests/unit/suite.h"

static int dir;
static struct spooler spooler;
static struct reports reports;
static struct dsn dsn;
static struct buf envelope;

static const struct package package = {
	.event_id = {1},
	.sdk_name = "name",
	.sdk_version = "1.2.3",
	.payload_fd = -1,
};

static void set_up(void)
{
	dir = open(suite_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(dsn_parse(&dsn, "https://key@localhost/1"), DSN_OK);
	buf_init(&envelope, 4096);
	OK(package_compress(&package, ENVELOPE_NOT_SENT, NULL, &envelope));
	reports_init(&reports, 0);
	spooler_init(&spooler, &reports);
	spooler_set_dsn(&spooler, &dsn);
}

static void tear_down(void)
{
	spooler_fini(&spooler);
	close_fd(&dir);
	buf_fini(&envelope);
}

static void leave_for(uint64_t number, enum envelope_kind kind, uint8_t n, uint64_t age_ms)
{
	const struct spool_entry e = {
		.time_ms = clock_wall_ns() / NS_PER_MS - age_ms,
		.dsn = number,
		.kind = kind,
		.id = {n},
	};
	char name[SPOOL_NAME_SIZE];
	int fd;

	spool_name_format(&e, name);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, envelope.data, envelope.len));
	close_fd(&fd);
}

/* Makes a file as an earlier ship would have left it. */
static void leave(uint8_t n, uint64_t age_ms)
{
	leave_for(dsn_hash(&dsn), ENVELOPE_CHUNK, n, age_ms);
}

static void open_spool(void)
{
	static const struct spool_limits defaults;

	OK(spooler_open(&spooler, dsn_hash(&dsn), &defaults, dir));
}

/* Sends an envelope to a server that answers all but the first n. */
static void send_to_a_server_without(uint8_t n)
{
	struct buf b;

	buf_init(&b, 4096);
	ck_assert(spooler_get(&spooler, ENVELOPE_CHUNK, COMPRESSION_GZIP, NULL, &b));
	spooler_handle_outcome(&spooler,
			       spooler.sending_id[0] <= n ? OUTCOME_NO_ANSWER : OUTCOME_ACCEPTED);
	buf_fini(&b);
}

/* Sends an envelope with this outcome, and returns the pause before the next one. */
static uint64_t pause_after(enum outcome outcome)
{
	const uint64_t before_ns = clock_boot_ns();
	struct buf b;

	buf_init(&b, 4096);
	ck_assert(spooler_get(&spooler, ENVELOPE_CHUNK, COMPRESSION_GZIP, NULL, &b));
	spooler_handle_outcome(&spooler, outcome);
	buf_fini(&b);
	ck_assert_uint_lt(spooler_due_ns(&spooler, ENVELOPE_CHUNK), UINT64_MAX);
	return spooler_due_ns(&spooler, ENVELOPE_CHUNK) - before_ns;
}

FIXTURE(set_up, tear_down)

TEST(the_chunks_of_an_hour_are_sent_with_pauses)
{
	uint64_t sum_ns = 0;

	for (uint8_t n = 0; n < 60; n++)
		leave(n, n * UINT64_C(60000));
	open_spool();
	for (int i = 0; i < 50; i++) {
		const uint64_t ns = pause_after(OUTCOME_ACCEPTED);

		ck_assert_uint_ge(ns, 15 * NS_PER_SEC / 2);
		sum_ns += ns;
	}
	/* Four times as often as they were made: 15 s on average. */
	ck_assert_uint_ge(sum_ns, 50 * 12 * NS_PER_SEC);
	ck_assert_uint_eq(spooler.counts.sent, 50);
	ck_assert_uint_eq(spooler.counts.count, 10);
}

/* A server that answers again gets the next envelope after one pause. */
TEST(an_answer_shortens_the_wait)
{
	const uint64_t before_ns = clock_boot_ns();

	for (uint8_t n = 0; n < 60; n++)
		leave(n, n * UINT64_C(60000));
	open_spool();
	spooler.next_ns = before_ns + 3600 * NS_PER_SEC;
	spooler_server_answers(&spooler);
	ck_assert_uint_ge(spooler_due_ns(&spooler, ENVELOPE_CHUNK) - before_ns,
			  15 * NS_PER_SEC / 2);
	ck_assert_uint_lt(spooler_due_ns(&spooler, ENVELOPE_CHUNK) - before_ns, 600 * NS_PER_SEC);
}

TEST(chunks_of_one_moment_are_sent_with_the_shortest_pause)
{
	for (uint8_t n = 0; n < 60; n++)
		leave(n, 0);
	open_spool();
	for (int i = 0; i < 50; i++)
		ck_assert_uint_ge(pause_after(OUTCOME_ACCEPTED), RETRY_PAUSE_MIN_NS);
}

/* Hosts that start at the same moment do not send at the same moment. */
TEST(the_first_wait_is_random)
{
	uint64_t least_ns = UINT64_MAX, most_ns = 0;

	leave(1, 0);
	for (int i = 0; i < 200; i++) {
		const uint64_t before_ns = clock_boot_ns();
		uint64_t ns;

		open_spool();
		ns = spooler_due_ns(&spooler, ENVELOPE_CHUNK) - before_ns;
		ck_assert_uint_le(ns, SPOOLER_START_MAX_NS + clock_boot_ns() - before_ns);
		least_ns = min_u64(least_ns, ns);
		most_ns = max_u64(most_ns, ns);
		spooler_fini(&spooler);
		spooler_init(&spooler, &reports);
		spooler_set_dsn(&spooler, &dsn);
	}
	/* That none of 200 is in the first or in the last quarter has a probability of 10^-24. */
	ck_assert_uint_lt(least_ns, SPOOLER_START_MAX_NS / 4);
	ck_assert_uint_gt(most_ns, SPOOLER_START_MAX_NS / 4 * 3);
}

/* Two that are too large for the connection, or whose contents a firewall refuses. */
TEST(envelopes_that_get_no_answer_do_not_hold_back_the_others)
{
	for (uint8_t n = 1; n <= 4; n++)
		leave(n, (5 - n) * UINT64_C(1000));
	leave_for(dsn_hash(&dsn) + 1, ENVELOPE_CHUNK, 5, 1000);
	leave_for(dsn_hash(&dsn), ENVELOPE_V1, 6, 1000);
	open_spool();
	for (int i = 0; i < 1000 && spooler.counts.sent < 2; i++)
		send_to_a_server_without(2);
	ck_assert_uint_eq(spooler.counts.sent, 2);
	ck_assert_uint_eq(spooler.counts.count, 4);
	/* Each is due when no others are left, and then seldom. */
	for (unsigned int i = 0; i < 4; i++) {
		const bool soon = spooler_due_ns(&spooler, ENVELOPE_CHUNK) <
				  clock_boot_ns() + 60 * NS_PER_SEC;

		ck_assert_int_eq(soon, i < 2);
		send_to_a_server_without(2);
		ck_assert_uint_eq(spooler.sending_id[0], 1 + i % 2);
	}
	send_to_a_server_without(0);
	send_to_a_server_without(0);
	ck_assert_uint_eq(spooler.counts.count, 2);
}

/* A short outage leaves the order as it is. */
TEST(the_oldest_envelope_is_sent_first)
{
	for (uint8_t n = 1; n <= 5; n++)
		leave(n, (6 - n) * UINT64_C(1000));
	open_spool();
	for (int i = 0; i < 2; i++)
		send_to_a_server_without(5);
	for (uint8_t n = 1; n <= 5; n++) {
		send_to_a_server_without(0);
		ck_assert_uint_eq(spooler.sending_id[0], n);
	}
}

/* A lost envelope of another DSN is reported to that DSN's server. */

TEST(losses_are_reported_to_their_own_server)
{
	const uint64_t old_ms = UINT64_C(48) * 3600 * 1000;
	const struct client_report *counted = &reports.counted;

	leave_for(dsn_hash(&dsn) + 1, ENVELOPE_CHUNK, 1, old_ms);
	leave_for(dsn_hash(&dsn), ENVELOPE_CHUNK, 2, old_ms);
	leave_for(dsn_hash(&dsn), ENVELOPE_V1, 3, old_ms);
	leave_for(dsn_hash(&dsn), ENVELOPE_V1, 4, old_ms);
	open_spool();
	ck_assert_uint_eq(spooler.counts.expired, 4);
	ck_assert_uint_eq(counted->quantity[ENVELOPE_CHUNK][CLIENT_REPORT_CACHE_OVERFLOW], 1);
	ck_assert_uint_eq(counted->quantity[ENVELOPE_V1][CLIENT_REPORT_CACHE_OVERFLOW], 2);
}

/* Writing fails with EFBIG, or no longer. */
static void break_disk(bool broken)
{
	const struct rlimit none = {.rlim_max = RLIM_INFINITY};
	const struct rlimit all = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};

	OK(setrlimit(RLIMIT_FSIZE, broken ? &none : &all));
}

static bool put(void)
{
	struct queue_item item = {
		.package = package,
		.chunk_id = "00112233445566778899aabbccddeeff",
	};

	return spooler_put(&spooler, &item);
}

/* Looks again when the pause after the failure is over. Returns whether the caller is told. */
static bool look_again(void)
{
	spooler.changed = false;
	spooler.disk_retry_ns = 1;
	spooler_check(&spooler);
	return spooler.changed;
}

static int count_file(void *ctx, const char *name)
{
	size_t *n = ctx;

	*n += strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
	return 0;
}

TEST(a_disk_that_fails_is_tried_until_it_works)
{
	size_t n_files = 0;

	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	open_spool();
	break_disk(true);
	spooler.changed = false;
	ck_assert(!put());
	ck_assert_int_eq(spooler.disk_error, EFBIG);
	ck_assert(spooler.changed);
	/* Not before the pause is over. */
	break_disk(false);
	spooler_check(&spooler);
	ck_assert_int_eq(spooler.disk_error, EFBIG);
	break_disk(true);
	ck_assert(!look_again());
	ck_assert_int_eq(spooler.disk_error, EFBIG);
	break_disk(false);
	ck_assert(look_again());
	ck_assert_int_eq(spooler.disk_error, 0);
	OK(spool_for_each_name(dir, count_file, &n_files));
	ck_assert_uint_eq(n_files, 0);
	ck_assert(put());
}

/* Otherwise no other chunk could be spooled as long as this one is the first of the queue. */
TEST(a_chunk_id_that_comes_twice_is_no_error_of_the_disk)
{
	open_spool();
	ck_assert(put());
	ck_assert(put());
	ck_assert_int_eq(spooler.disk_error, 0);
	ck_assert_uint_eq(spooler.counts.count, 1);
}

/* The broker is told, and the chunk is not too large: it is spooled when the user removes them. */
TEST(files_that_are_set_aside_fill_the_spool)
{
	const struct spool_limits limits = {.bytes = envelope.len};
	int fd;

	fd = openat(dir, "notes" SPOOL_ASIDE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, envelope.data, envelope.len));
	close_fd(&fd);
	OK(spooler_open(&spooler, dsn_hash(&dsn), &limits, dir));
	spooler.changed = false;
	ck_assert(!put());
	ck_assert_int_eq(spooler.disk_error, ENOTEMPTY);
	ck_assert(spooler.changed);
	ck_assert(!look_again());
	OK(unlinkat(dir, "notes" SPOOL_ASIDE, 0));
	ck_assert(look_again());
	ck_assert_int_eq(spooler.disk_error, 0);
	ck_assert(put());
}

TEST(a_chunk_is_larger_than_the_spool)
{
	const struct spool_limits limits = {.bytes = 1};

	OK(spooler_open(&spooler, dsn_hash(&dsn), &limits, dir));
	ck_assert(!put());
	ck_assert_int_eq(spooler.disk_error, 0);
	ck_assert(!look_again());
}
