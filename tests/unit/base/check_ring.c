#include "lib/base/ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define SIZE	  4096
#define ALL_SEALS (F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct ring_writer w;
static struct ring_reader r;

static void set_up(void)
{
	OK(ring_writer_init(&w, SIZE));
	OK(ring_reader_init(&r, w.fd));
	ck_assert_uint_eq(r.size, SIZE);
}

static void tear_down(void)
{
	ring_reader_fini(&r);
	ring_writer_fini(&w);
}

/* Writes a record of size bytes whose payload is filled with byte. */
static int put(size_t size, uint32_t type, int byte)
{
	void *at = NULL;
	int result = ring_reserve(&w, size, &at);

	if (result < 0)
		return result;
	memset((uint8_t *)at + sizeof(struct ring_record), byte, size - sizeof(struct ring_record));
	ring_commit(&w, type, size);
	return 0;
}

/* Reads and releases a record, and gives the writer the credit. */
static uint32_t get(void)
{
	const struct ring_record *record = NULL;
	size_t size = 0;
	uint32_t type;

	OK(ring_advance(&r, w.head));
	ck_assert_int_eq(ring_next(&r, &record, &size), 1);
	ck_assert_uint_eq(record->size, size);
	type = record->type;
	ring_release(&r, size);
	OK(ring_credit(&w, r.tail));
	return type;
}

static int next(void)
{
	const struct ring_record *record;
	size_t size;

	return ring_next(&r, &record, &size);
}

FIXTURE(set_up, tear_down)

TEST(only_sizes_that_fit_are_accepted)
{
	static const size_t bad[] = {0, 1, SIZE / 2, 6000, 12288, (size_t)RING_SIZE_MAX * 2};
	struct ring_writer other;

	for (size_t i = 0; i < array_size(bad); i++)
		ck_assert_int_eq(ring_writer_init(&other, bad[i]), -EINVAL);
	ring_writer_fini(NULL);
	ring_reader_fini(NULL);
}

/* The seals forbid other writers, and rule out SIGBUS for the reader. */
TEST(the_memory_is_sealed)
{
	ck_assert_int_eq(fcntl(w.fd, F_GET_SEALS), ALL_SEALS);
	ck_assert_int_eq(fcntl(w.fd, F_GETFD), FD_CLOEXEC);
	ck_assert_ptr_eq(mmap(NULL, SIZE, PROT_WRITE, MAP_SHARED, w.fd, 0), MAP_FAILED);
	ck_assert_int_eq(write(w.fd, "x", 1), -1);
	ck_assert_int_eq(ftruncate(w.fd, 0), -1);
	ck_assert_int_eq(ftruncate(w.fd, 4 * SIZE), -1);
}

TEST(a_record_comes_out_as_it_went_in)
{
	const struct ring_record *record = NULL, *again = NULL;
	size_t size = 0;
	uint8_t expected[16];

	/* Older bytes at the same place. */
	for (int half = 0; half < 2; half++) {
		OK(put(SIZE / 2, 1, 0xff));
		ck_assert_uint_eq(get(), 1);
	}
	ck_assert_int_eq(next(), 0);
	OK(put(19, 5, 0xaa));
	ck_assert_uint_eq(w.head, SIZE + 24);
	ck_assert_int_eq(next(), 0);
	OK(ring_advance(&r, w.head));
	ck_assert_int_eq(ring_next(&r, &record, &size), 1);
	ck_assert_uint_eq(record->type, 5);
	ck_assert_uint_eq(size, 24);
	/* The padding is zero: older bytes are not visible. */
	memset(expected, 0, sizeof(expected));
	memset(expected, 0xaa, 11);
	ck_assert_mem_eq(record + 1, expected, 16);
	/* The record is returned again until it is released. */
	ck_assert_int_eq(ring_next(&r, &again, &size), 1);
	ck_assert_ptr_eq(record, again);
	ring_release(&r, size);
	ck_assert_int_eq(next(), 0);
}

TEST(uncommitted_records_are_not_visible)
{
	void *at = NULL;

	OK(ring_reserve(&w, 100, &at));
	ring_abort(&w);
	ck_assert_uint_eq(w.head, 0);
	/* Unused bytes of a reservation are free again. */
	OK(ring_reserve(&w, 1000, &at));
	ring_commit(&w, 1, 16);
	ck_assert_uint_eq(w.head, 16);
	ck_assert_uint_eq(get(), 1);
	ck_assert_int_eq(next(), 0);
}

TEST(a_record_is_at_most_half_the_ring)
{
	void *at = NULL;

	ck_assert_int_eq(ring_reserve(&w, SIZE / 2 + 1, &at), -E2BIG);
	ck_assert_int_eq(ring_reserve(&w, SIZE_MAX, &at), -E2BIG);
	ck_assert_ptr_null(at);
	OK(put(SIZE / 2, 1, 0));
	ck_assert_uint_eq(get(), 1);
}

TEST(a_full_ring_refuses_until_it_is_read)
{
	for (uint32_t i = 0; i < SIZE / 64; i++)
		OK(put(64, i + 1, 0));
	ck_assert_int_eq(put(8, 99, 0), -ENOBUFS);
	ck_assert_uint_eq(w.head, SIZE);
	ck_assert_uint_eq(get(), 1);
	ck_assert_int_eq(put(72, 99, 0), -ENOBUFS);
	OK(put(64, 99, 0));
	ck_assert_int_eq(put(8, 99, 0), -ENOBUFS);
	for (uint32_t i = 1; i < SIZE / 64; i++)
		ck_assert_uint_eq(get(), i + 1);
	ck_assert_uint_eq(get(), 99);
	ck_assert_int_eq(next(), 0);
}

/* The end of the lap is skipped, and counts as used until the reader has skipped it. */
TEST(a_record_that_does_not_fit_the_lap_starts_the_next)
{
	const struct ring_record *record = NULL;
	size_t size = 0;

	OK(put(1000, 1, 0));
	OK(put(1000, 2, 0));
	OK(put(1000, 3, 0));
	ck_assert_uint_eq(get(), 1);
	ck_assert_int_eq(put(1104, 4, 0), -ENOBUFS);
	ck_assert_uint_eq(get(), 2);
	OK(put(1104, 4, 0));
	ck_assert_uint_eq(w.head, SIZE + 1104);
	ck_assert_uint_eq(get(), 3);
	ck_assert_int_eq(ring_next(&r, &record, &size), 1);
	ck_assert_ptr_eq(record, r.base);
	ck_assert_uint_eq(size, 1104);
	ck_assert_uint_eq(get(), 4);
	ck_assert_uint_eq(r.tail, w.head);
}

/* A reader that keeps up keeps both in the first pages of the memory. */
TEST(an_empty_ring_starts_at_the_beginning_of_the_memory)
{
	uint64_t highest = 0;

	for (int i = 0; i < 100; i++) {
		const struct ring_record *record = NULL;
		uint64_t at;
		size_t size = 0;

		OK(put(200, 1, 0));
		OK(ring_advance(&r, w.head));
		ck_assert_int_eq(ring_next(&r, &record, &size), 1);
		at = (uint64_t)((const uint8_t *)record - r.base);
		highest = at > highest ? at : highest;
		ring_release(&r, size);
		OK(ring_credit(&w, r.tail));
	}
	ck_assert_uint_eq(highest, 200);
}

/* The same with a reader that is one record behind, so that the ring is never empty. */
TEST(a_reader_that_follows_stays_near_the_beginning)
{
	OK(put(SIZE / 32, 1, 1));
	for (int i = 0; i < 200; i++) {
		OK(put(SIZE / 32, 1, 1));
		ck_assert_uint_le(w.head & (SIZE - 1), SIZE / 4);
		ck_assert_uint_eq(get(), 1);
	}
}

/* ring_bytes_since() does not count pads at the end of a lap. */
TEST(bytes_since_a_position_do_not_include_end_pads)
{
	for (int i = 0; i < 1000; i++) {
		const uint64_t from = w.head;

		ck_assert_uint_eq(ring_bytes_since(&w, from), 0);
		OK(put(SIZE / 32, 1, 1));
		ck_assert_uint_eq(ring_bytes_since(&w, from), SIZE / 32);
		OK(put(SIZE / 32, 1, 1));
		ck_assert_uint_eq(ring_bytes_since(&w, from), SIZE / 16);
		ck_assert_uint_eq(get(), 1);
		ck_assert_uint_eq(get(), 1);
		ck_assert_uint_eq(r.read, (uint64_t)(i + 1) * SIZE / 16);
	}
	ck_assert_uint_gt(w.head, 100 * SIZE);
}

/* Fills the start of a lap, up to where it may end early with a reader one record behind. */
static void follow_to_an_early_end(void)
{
	for (int i = 0; i < 2; i++) {
		OK(put(32, 1, 0));
		ck_assert_uint_eq(get(), 1);
	}
	ck_assert_uint_eq(w.tail, SIZE / 64);
}

/* Returns bytes; the type of each record is one more than that of the record before. */
static size_t fill(size_t size, uint32_t type)
{
	const uint32_t first = type;

	while (put(size, type, (int)type) == 0)
		type++;
	ck_assert_uint_lt(ring_space(&w), 2 * size);
	return (type - first) * size;
}

static void expect(uint32_t type, size_t bytes, size_t size)
{
	for (; bytes > 0; bytes -= size)
		ck_assert_uint_eq(get(), type++);
	ck_assert_uint_eq(w.tail, w.head);
}

/* All memory is usable: up to the reader, and from the early end of the lap to its real end. */
TEST(an_early_end_costs_no_room)
{
	const size_t sizes[] = {8, 16, 64, 200, 1000, SIZE / 2};

	for (size_t i = 0; i < array_size(sizes); i++) {
		size_t bytes;

		tear_down();
		set_up();
		follow_to_an_early_end();
		OK(put(8, 1, 0));
		ck_assert_uint_eq(w.head, SIZE + 8);
		ck_assert_uint_eq(ring_space(&w), SIZE - 8 - 8);
		bytes = fill(sizes[i], 2);
		ck_assert_uint_ge(bytes + 64 + 2 * sizes[i], SIZE);
		ck_assert_uint_eq(get(), 1);
		expect(2, bytes, sizes[i]);
	}
}

/* Several laps with a reader that is late in each. */
TEST(records_beyond_an_early_end_are_read_in_order)
{
	for (size_t size = 8; size < 400; size += 8) {
		size_t bytes;

		for (;;) {
			OK(put(64, 1, 0));
			if (w.pad > SIZE / 2 && w.head % SIZE == 64)
				break;
			ck_assert_uint_eq(get(), 1);
		}
		bytes = fill(size, 2);
		/* Free up to the end of the memory, not up to the reader. */
		ck_assert_uint_gt((w.head - 1) % SIZE + 1 + size, SIZE);
		ck_assert_uint_eq(get(), 1);
		expect(2, bytes, size);
	}
}

/* The next record would have its place where unread records are. */
TEST(unread_records_are_not_overwritten)
{
	follow_to_an_early_end();
	OK(put(32, 2, 'a'));
	OK(put(16, 3, 'b'));
	ck_assert_uint_eq(w.head, SIZE + 48);
	/* 64 bytes are free by the credit; 8 of them are kept for a pad. */
	OK(put(16, 4, 'c'));
	ck_assert_uint_eq(w.head, SIZE + 64 + 8 + 16);
	ck_assert_uint_eq(get(), 2);
	ck_assert_uint_eq(get(), 3);
	ck_assert_uint_eq(get(), 4);
}

TEST(skipping_unread_records_avoids_a_refusal)
{
	follow_to_an_early_end();
	OK(put(SIZE / 2, 4, 0));
	ck_assert_uint_lt(w.head, SIZE);
	ck_assert_uint_eq(get(), 4);
}

/* A reader that was very late once may need the whole ring. */
TEST(a_reader_that_was_late_gets_the_whole_lap)
{
	const size_t size = SIZE / 64;
	uint64_t lap_end = SIZE;

	for (int i = 0; i < 3; i++) {
		for (int n = 0; n < 33; n++)
			OK(put(size, 1, 0));
		while (w.head < lap_end) {
			ck_assert_uint_eq(get(), 1);
			OK(put(size, 1, 0));
			ck_assert_uint_le(w.head - w.tail, 33 * size);
		}
		while (w.tail < w.head)
			ck_assert_uint_eq(get(), 1);
		/* The next lap starts without that lag. */
		while (w.head < lap_end + SIZE) {
			OK(put(size, 1, 0));
			ck_assert_uint_eq(get(), 1);
		}
		ck_assert_uint_eq(w.head, lap_end + SIZE + size);
		ck_assert_uint_eq(w.pad, SIZE - 2 * size);
		lap_end += 2 * SIZE;
	}
}

/* Returns the number of mappings of rings in this process. */
static unsigned int mapped(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file) != NULL)
		n += strstr(line, "/memfd:ring") != NULL;
	(void)fclose(file);
	return n;
}

TEST(a_detached_ring_keeps_no_shared_memory)
{
	const unsigned int before = mapped();

	ck_assert_uint_ge(before, 1);
	while (put(SIZE / 4, 1, 'x') == 0)
		;
	ring_writer_detach(&w);
	ck_assert_uint_eq(mapped(), before - 1);
	ck_assert_int_eq(w.fd, -1);
	/* The positions are as before. */
	ck_assert_uint_eq(w.head, SIZE);
	ck_assert_int_eq(put(64, 1, 'x'), -ENOBUFS);
	OK(ring_credit(&w, SIZE / 4));
	OK(put(64, 1, 'x'));
	ck_assert_uint_eq(w.head, SIZE + 64);
}

TEST(a_credit_that_goes_back_or_too_far_is_refused)
{
	OK(put(64, 1, 0));
	OK(put(64, 2, 0));
	OK(ring_credit(&w, 64));
	OK(ring_credit(&w, 64));
	ck_assert_int_eq(ring_credit(&w, 63), -EPROTO);
	ck_assert_int_eq(ring_credit(&w, 0), -EPROTO);
	ck_assert_int_eq(ring_credit(&w, 129), -EPROTO);
	ck_assert_int_eq(ring_credit(&w, UINT64_MAX), -EPROTO);
	ck_assert_uint_eq(w.tail, 64);
	OK(ring_credit(&w, 128));
}

TEST(a_head_that_goes_back_or_too_far_is_refused)
{
	OK(ring_advance(&r, 64));
	OK(ring_advance(&r, 64));
	ck_assert_int_eq(ring_advance(&r, 56), -EPROTO);
	ck_assert_int_eq(ring_advance(&r, 68), -EPROTO);
	ck_assert_int_eq(ring_advance(&r, 2 * SIZE + 8), -EPROTO);
	ck_assert_int_eq(ring_advance(&r, UINT64_MAX - 7), -EPROTO);
	ck_assert_uint_eq(r.head, 64);
	OK(ring_advance(&r, 2 * SIZE));
}

/* The writer was killed before it could send the head. */
TEST(the_memory_has_the_head_of_the_last_commit)
{
	void *at = NULL;

	OK(ring_advance_to_end(&r));
	ck_assert_int_eq(next(), 0);
	OK(put(64, 1, 0));
	OK(ring_advance(&r, w.head));
	OK(put(64, 2, 0));
	OK(ring_reserve(&w, 64, &at));
	OK(ring_advance_to_end(&r));
	ck_assert_uint_eq(r.head, 128);
	ring_abort(&w);
	ring_writer_detach(&w);
	OK(put(64, 3, 0));
	OK(ring_advance_to_end(&r));
	ck_assert_uint_eq(r.head, 128);
}

/*
 * Random records and steps against a model, a queue; head and tail reach the other side late.
 */
#define QUEUE 1024

TESTS(random_steps_agree_with_a_queue, 4)
{
	uint64_t random = (uint64_t)_i;
	struct {
		size_t size;
		uint32_t type;
	} queue[QUEUE];
	size_t in = 0, out = 0;

	for (int step = 0; step < 100000; step++) {
		size_t size = 8 + random_next(&random) % 500;
		uint32_t type = 1 + (uint32_t)(random_next(&random) % 1000);
		const struct ring_record *record;
		void *at;

		switch (random_next(&random) % 6) {
		case 0:
		case 1:
			if (put(size, type, (int)type) < 0) {
				/* The ring is full. */
				ck_assert_uint_lt(ring_space(&w), 1024);
				break;
			}
			queue[in % QUEUE].size = align_up(size, RING_ALIGN);
			queue[in++ % QUEUE].type = type;
			break;
		case 2:
			if (ring_reserve(&w, size, &at) == 0)
				ring_abort(&w);
			break;
		case 3:
			OK(ring_advance(&r, w.head));
			break;
		case 4:
			OK(ring_credit(&w, r.tail));
			break;
		default:
			if (ring_next(&r, &record, &size) != 1)
				break;
			ck_assert_uint_lt(out, in);
			if (record->type != queue[out % QUEUE].type ||
			    size != queue[out % QUEUE].size ||
			    (size > 8 && *(const uint8_t *)(record + 1) != (uint8_t)record->type))
				ck_abort_msg("record %zu is another", out);
			out++;
			ring_release(&r, size);
		}
	}
	ck_assert_uint_gt(out, 1000);
}

/* Makes a memfd in place of a writer's: size bytes, and the page of the head. */
static int make_memfd(size_t size, const void *bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_ge(fd, 0);
	OK(ftruncate(fd, (off_t)size + sysconf(_SC_PAGESIZE)));
	if (bytes != NULL)
		ck_assert_int_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
	OK(fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

FIXTURE(NULL, NULL)

TEST(the_reader_takes_only_sealed_memory_of_a_fitting_size)
{
	static const struct {
		size_t size;
		int seals;
		int expected;
	} cases[] = {
		{SIZE, ALL_SEALS, 0},
		{SIZE, ALL_SEALS & ~F_SEAL_FUTURE_WRITE, -EPROTO},
		{SIZE, ALL_SEALS & ~F_SEAL_SHRINK, -EPROTO},
		{SIZE, ALL_SEALS & ~F_SEAL_GROW, -EPROTO},
		{SIZE, ALL_SEALS & ~F_SEAL_SEAL, -EPROTO},
		{0, ALL_SEALS, -EPROTO},
		{SIZE / 2, ALL_SEALS, -EPROTO},
		{3 * SIZE, ALL_SEALS, -EPROTO},
		{(size_t)RING_SIZE_MAX * 2, ALL_SEALS, -EPROTO},
	};
	struct ring_reader other;
	int fds[2];

	for (size_t i = 0; i < array_size(cases); i++) {
		int fd = make_memfd(cases[i].size, NULL, cases[i].seals);

		ck_assert_int_eq(ring_reader_init(&other, fd), cases[i].expected);
		if (cases[i].expected == 0)
			ring_reader_fini(&other);
		(void)close(fd);
	}
	OK(pipe(fds));
	ck_assert_int_eq(ring_reader_init(&other, fds[0]), -EPROTO);
	ck_assert_int_eq(ring_reader_init(&other, -1), -EPROTO);
	fds[0] = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	OK(fcntl(fds[0], F_ADD_SEALS, ALL_SEALS));
	ck_assert_int_eq(ring_reader_init(&other, fds[0]), -EPROTO);
}

/* Makes a reader of memory with these bytes up to head. */
static struct ring_reader reader_of(const void *bytes, uint64_t head)
{
	struct ring_reader reader = {0};
	int fd = make_memfd(SIZE, bytes, ALL_SEALS);

	OK(ring_reader_init(&reader, fd));
	OK(ring_advance(&reader, head));
	(void)close(fd);
	return reader;
}

TEST(a_record_of_an_impossible_size_ends_the_ring)
{
	static const struct {
		uint32_t size;
		uint32_t type;
		uint64_t head;
	} cases[] = {
		{0, 1, 64},
		{0, 0, 64},
		{4, 1, 64},
		{7, 1, 64},
		{12, 1, 64},
		{72, 1, 64},
		{72, 0, 64},
		{SIZE, 1, 64},
		{UINT32_MAX, 1, SIZE},
		{SIZE + 8, 1, SIZE},
		{UINT32_MAX - 7, 0, SIZE},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		uint32_t words[SIZE / 4] = {cases[i].size, cases[i].type};
		const struct ring_record *record = NULL;
		struct ring_reader reader = reader_of(words, cases[i].head);
		size_t size = 0;

		ck_assert_int_eq(ring_next(&reader, &record, &size), -EPROTO);
		ck_assert_ptr_null(record);
		ring_reader_fini(&reader);
	}
}

/* A record may end at the end of the memory, but not beyond. */
TEST(a_record_never_reaches_over_the_end_of_the_memory)
{
	uint32_t words[SIZE / 4] = {SIZE - 64, 1};
	const struct ring_record *record = NULL;
	struct ring_reader reader;
	size_t size = 0;

	words[(SIZE - 64) / 4] = 72;
	words[(SIZE - 64) / 4 + 1] = 1;
	reader = reader_of(words, SIZE);
	ck_assert_int_eq(ring_next(&reader, &record, &size), 1);
	ring_release(&reader, size);
	OK(ring_advance(&reader, SIZE + 64));
	ck_assert_int_eq(ring_next(&reader, &record, &size), -EPROTO);
	ring_reader_fini(&reader);
}

static void read_random_bytes(uint64_t seed)
{
	uint64_t random = seed;
	uint32_t words[SIZE / 4];
	struct ring_reader reader;
	uint64_t head = align_up(random_next(&random) % SIZE, RING_ALIGN);

	/* Mostly small multiples of 8, so that the reader gets far. */
	for (size_t i = 0; i < array_size(words); i += 2) {
		uint64_t dice = random_next(&random);

		words[i] = dice % 50 ? (uint32_t)(dice >> 32) % 16 * 8 : (uint32_t)(dice >> 32);
		words[i + 1] = (uint32_t)(dice >> 16) % 3;
	}
	reader = reader_of(words, head);
	for (int steps = 0;; steps++) {
		const struct ring_record *record = NULL;
		size_t size = 0, at;

		if (steps > SIZE / 8)
			ck_abort_msg("seed %ju: no end", (uintmax_t)seed);
		if (ring_next(&reader, &record, &size) != 1)
			break;
		at = (size_t)((const uint8_t *)record - reader.base);
		if (at > SIZE || size > SIZE - at || size < 8 || reader.tail + size > head)
			ck_abort_msg("seed %ju: out of bounds", (uintmax_t)seed);
		ring_release(&reader, size);
	}
	ring_reader_fini(&reader);
}

TEST(any_bytes_are_read_within_bounds_and_to_an_end)
{
	for (uint64_t seed = 0; seed < 1000; seed++)
		read_random_bytes(seed);
}
