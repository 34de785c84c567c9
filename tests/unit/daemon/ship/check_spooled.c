/*
 * What ship keeps on the disk: how fast it comes out again, and what is told of
 * what does not.
 */
#include "daemon/ship/spooled.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/ship/pace.h"
#include "tests/unit/suite.h"

static int dir;
static struct spooled spooled;
static struct reports reports;
static struct dsn dsn;
static struct buf envelope;

static void set_up(void)
{
	const struct package p = {
		.event_id = {1},
		.sdk_name = "name",
		.sdk_version = "1.2.3",
		.payload_fd = -1,
	};

	dir = open(suite_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	ck_assert_int_eq(dsn_parse(&dsn, "https://key@localhost/1"), DSN_OK);
	buf_init(&envelope, 4096);
	OK(package_compress(&p, ENVELOPE_NOT_SENT, NULL, &envelope));
	reports_init(&reports, 0);
	spooled_init(&spooled, &reports);
	spooled_set_dsn(&spooled, &dsn);
}

static void tear_down(void)
{
	spooled_fini(&spooled);
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

	spool_name(&e, name);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	OK(write_all(fd, envelope.data, envelope.len));
	close_fd(&fd);
}

/* As another ship has left it. */
static void leave(uint8_t n, uint64_t age_ms)
{
	leave_for(dsn_number(&dsn), ENVELOPE_CHUNK, n, age_ms);
}

static void open_spool(void)
{
	static const struct spool_limits defaults;

	OK(spooled_open(&spooled, dsn_number(&dsn), &defaults, dir));
}

/* Gives one, which is answered so, and says what the next one waits for. */
static uint64_t pause_after(enum verdict verdict)
{
	const uint64_t before_ns = clock_boot_ns();
	struct buf b;

	buf_init(&b, 4096);
	ck_assert(spooled_give(&spooled, ENVELOPE_CHUNK, COMPRESSION_GZIP, NULL, &b));
	spooled_answered(&spooled, verdict);
	buf_fini(&b);
	ck_assert_uint_lt(spooled_due_ns(&spooled, ENVELOPE_CHUNK), UINT64_MAX);
	return spooled_due_ns(&spooled, ENVELOPE_CHUNK) - before_ns;
}

FIXTURE(set_up, tear_down)

TEST(an_hour_is_not_sent_at_once)
{
	uint64_t sum_ns = 0;

	for (uint8_t n = 0; n < 60; n++)
		leave(n, n * UINT64_C(60000));
	open_spool();
	for (int i = 0; i < 50; i++) {
		const uint64_t ns = pause_after(VERDICT_TAKEN);

		ck_assert_uint_ge(ns, 15 * NS_PER_SEC / 2);
		sum_ns += ns;
	}
	/* Four times as often as they were made: 15 s in the mean. */
	ck_assert_uint_ge(sum_ns, 50 * 12 * NS_PER_SEC);
	ck_assert_uint_eq(spooled.counts.sent, 50);
	ck_assert_uint_eq(spooled.counts.count, 10);
}

/* Of a server that answers again: not for a minute more, and not all at once.
 */
TEST(an_answer_makes_them_due)
{
	const uint64_t before_ns = clock_boot_ns();

	for (uint8_t n = 0; n < 60; n++)
		leave(n, n * UINT64_C(60000));
	open_spool();
	spooled.next_ns = before_ns + 3600 * NS_PER_SEC;
	spooled_hurry(&spooled);
	ck_assert_uint_ge(spooled_due_ns(&spooled, ENVELOPE_CHUNK) - before_ns,
			  15 * NS_PER_SEC / 2);
	ck_assert_uint_lt(spooled_due_ns(&spooled, ENVELOPE_CHUNK) - before_ns, 600 * NS_PER_SEC);
}

TEST(many_at_once_are_no_burst)
{
	for (uint8_t n = 0; n < 60; n++)
		leave(n, 0);
	open_spool();
	for (int i = 0; i < 50; i++)
		ck_assert_uint_ge(pause_after(VERDICT_TAKEN), PACE_LEAST_NS);
}

/* Hosts that start at the same moment have something to send, too. */
TEST(the_first_waits_by_chance)
{
	uint64_t least_ns = UINT64_MAX, most_ns = 0;

	leave(1, 0);
	for (int i = 0; i < 200; i++) {
		const uint64_t before_ns = clock_boot_ns();
		uint64_t ns;

		open_spool();
		ns = spooled_due_ns(&spooled, ENVELOPE_CHUNK) - before_ns;
		ck_assert_uint_le(ns, SPOOLED_START_MAX_NS + clock_boot_ns() - before_ns);
		least_ns = min_u64(least_ns, ns);
		most_ns = max_u64(most_ns, ns);
		spooled_fini(&spooled);
		spooled_init(&spooled, &reports);
		spooled_set_dsn(&spooled, &dsn);
	}
	/* Of 200, none in the first or last quarter once in 10^24 times. */
	ck_assert_uint_lt(least_ns, SPOOLED_START_MAX_NS / 4);
	ck_assert_uint_gt(most_ns, SPOOLED_START_MAX_NS / 4 * 3);
}

/* What is another server's is no loss of this one's. */
TEST(losses_are_told_to_their_own_server)
{
	const uint64_t old_ms = UINT64_C(48) * 3600 * 1000;
	const struct client_report *counted = &reports.counted;

	leave_for(dsn_number(&dsn) + 1, ENVELOPE_CHUNK, 1, old_ms);
	leave_for(dsn_number(&dsn), ENVELOPE_CHUNK, 2, old_ms);
	leave_for(dsn_number(&dsn), ENVELOPE_V1, 3, old_ms);
	leave_for(dsn_number(&dsn), ENVELOPE_V1, 4, old_ms);
	open_spool();
	ck_assert_uint_eq(spooled.counts.expired, 4);
	ck_assert_uint_eq(counted->quantity[ENVELOPE_CHUNK][CLIENT_REPORT_CACHE_OVERFLOW], 1);
	ck_assert_uint_eq(counted->quantity[ENVELOPE_V1][CLIENT_REPORT_CACHE_OVERFLOW], 2);
}
