/* Tests when a chunk of an aggregate is due, where it ends, and how the next chunk begins. */
#include "lib/aggregate/aggregate.h"

#include "lib/aggregate/window.h"
#include "tests/unit/aggregate/script.h"
#include "tests/unit/suite.h"

FIXTURE(set_up, tear_down)

/* A thread is missed from the first tick of a chunk on. */
TEST(missed_since_the_chunk_began)
{
	play("0 1:am, 0 2:bm, 0-30");
	CHUNK(30, "0 1:am, 0 2:bm, 30 1:am, 30 2:bm");
	play("30 1:-, 40");
	OK(aggregate_close(a, 40 * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk), "30 2:bm, 40 2:bm");
	ck_assert_uint_eq(chunk.n_threads, 1);
	OK(aggregate_next(a));
	/* Another thread that is missed and then sampled again. */
	play("40 2:-, 60 2:cm, 50-70");
	CHUNK(70, "60 2:cm, 70 2:cm");
}

TEST(chunks_follow_without_a_hole)
{
	play("0 1:am, 0 2:bm, 0-30, 40 2:cm, 40-50");
	CHUNK(50, "0 1:am, 0 2:bm, 30 2:bm, 40 2:cm, 50 1:am, 50 2:cm");
	ticks(60, 80);
	CHUNK(80, "50 1:am, 50 2:cm, 80 1:am, 80 2:cm");
	play("80 1:xm, 90");
	CHUNK(90, "80 1:xm, 80 2:cm, 90 1:xm, 90 2:cm");
}

/*
 * Records that came before the close and are later than the chunk's end belong to the next chunk.
 */
TEST(samples_after_the_end_go_to_the_next_chunk)
{
	play("0 1:am, 0-30, 40 1:bm, 40 2:cm, 40~20, 50 1:-, 60 1:dm, "
	     "60~20");
	CHUNK(20, "0 1:am, 20 1:am");
	tick(70);
	CHUNK(70, "20 1:am, 30 1:am, 40 1:bm, 40 2:cm, 50 1:-, 60 1:dm, "
		  "70 1:dm, 70 2:cm");
}

TEST(sample_at_the_end_goes_to_the_next_chunk)
{
	play("0 1:am, 0-20, 20 1:bm");
	CHUNK(20, "0 1:am, 10 1:am, 20 1:am");
	tick(30);
	CHUNK(30, "20 1:bm, 30 1:bm");
}

TEST(exit_at_the_end)
{
	play("0 1:am, 0 2:bm, 0-20");
	OK(aggregate_exit_all(a, 20 * MS));
	CHUNK(20, "0 1:am, 0 2:bm, 20 1:am, 20 2:bm");
	ticks(30, 40);
	CHUNK(40, "");
}

TEST(exit_after_the_end)
{
	play("0 1:am, 0-30, 30 1:.");
	CHUNK(20, "0 1:am, 20 1:am");
	ticks(40, 50);
	CHUNK(50, "20 1:am, 30 1:am");
	tick(60);
	CHUNK(60, "");
}

/*
 * Capture has died, or unwind was stopped, at this time: the state of the threads is unknown until
 * capture is back. The samples before stay.
 */
static void interrupt_all(uint64_t ms)
{
	OK(aggregate_exit_all(a, ms * MS));
}

static void announce(uint32_t tid, const char *name)
{
	OK(aggregate_thread(a, tid, false, name, strlen(name)));
}

TEST(samples_after_an_interruption)
{
	play("0 1:am, 20 2:bm, 0-30");
	interrupt_all(30);
	announce(1, "one");
	announce(2, "two");
	play("100 1:am, 100 2:cm, 100-120");
	CHUNK(120, "0 1:am, 20 1:am, 20 2:bm, 30 1:-, 30 2:-, 100 1:am, "
		   "100 2:cm, 120 1:am, 120 2:cm");
}

/* The first tick after the interruption ends the chunk. A name is recorded only once. */
TEST(thread_names_after_an_interruption)
{
	play("0 1:am, 0-900");
	interrupt_all(900);
	announce(1, "one");
	tick(1100);
	CHUNK(1100, "0 1:am, 890 1:am, 900 1:-");
	play("1110 1:am, 1110-1130");
	OK(aggregate_close(a, 1130 * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk), "1110 1:am, 1130 1:am");
	ck_assert_str_eq(chunk.threads[0].name, "one");
}

/* As before, with an interruption so long that it is a gap, at which the chunk ends. */
TEST(thread_names_after_a_gap)
{
	play("0 1:am, 0-100");
	interrupt_all(100);
	announce(1, "one");
	tick(9000);
	CHUNK(9000, "0 1:am, 90 1:am, 100 1:am");
	play("9010 1:am, 9010-9030");
	OK(aggregate_close(a, 9030 * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk), "9010 1:am, 9030 1:am");
	ck_assert_str_eq(chunk.threads[0].name, "one");
}

/* A late sample that is earlier than the open chunk is added at the beginning of the chunk. */
TEST(sample_earlier_than_the_chunk)
{
	play("0 1:am, 0-50");
	CHUNK(50, "0 1:am, 50 1:am");
	sample(1, 30, "bm");
	sample(2, 40, "cm"); /* also the first sample of a thread */
	ticks(60, 70);
	CHUNK(70, "50 1:bm, 50 2:cm, 70 1:bm, 70 2:cm");
}

TEST(due_at_its_length)
{
	play("5 1:am, 10-1000");
	ck_assert(!due);
	tick_settled(1010, 1000);
	ck_assert(!due);
	tick(1010);
	ck_assert(due);
	CHUNK(1010, "5 1:am, 1010 1:am");
	tick(1020);
	ck_assert(!due);
}

/* A gap of five minutes is in neither chunk, and not in the table. */
TEST(gap_of_five_minutes)
{
	open_with(WINDOW_MAX_US, 20000000);
	play("0 1:am, 0 2:bm, 0-100");
	ck_assert(!due);
	play("300100 2:cm, 300100");
	ck_assert(due);
	OK(aggregate_close(a, UINT64_C(300100) * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk), "0 1:am, 0 2:bm, 100 1:am, 100 2:bm");
	ck_assert_int_eq(profile_check(&chunk), PROFILE_BAD_ID);
	OK(aggregate_next(a));
	tick(300110);
	ck_assert(!due);
	tick(300120);
	CHUNK(300120, "300100 1:am, 300100 2:cm, 300120 1:am, 300120 2:cm");
	ck_assert_uint_eq(letters_times(a).waiting_ns, 2 * 120 * MS);
}

/* The caller closes the chunk at a time before a gap. The chunk ends at the gap. */
TEST(end_before_a_gap)
{
	play("0 1:am, 0-100, 9000~100");
	/* Samples older than 5 s are not awaited, even if the tick is not settled. */
	CHUNK(50, "0 1:am, 100 1:am");
	tick(9010);
	CHUNK(9010, "9000 1:am, 9010 1:am");
}

/* If the settled tick advances far at once, the chunk is still not longer than its limit. */
TEST(settled_tick_advances_far_at_once)
{
	open_with(1000000, 20000000);
	sample(1, 0, "am");
	for (uint64_t ms = 0; ms <= 4000; ms += 10)
		tick_settled(ms, 0);
	ck_assert(!due);
	/*
	 * The time is more than the chunk's length and the lag, so the chunk is cut to its length.
	 */
	for (uint64_t ms = 4010; ms <= 7000; ms += 10)
		tick_settled(ms, 0);
	play("7010 1:bm, 7010");
	ck_assert(due);
	CHUNK(7010, "0 1:am, 1000 1:am");
	tick(7020);
	ck_assert(due);
	CHUNK(7020, "1000 1:am, 2000 1:am");
	tick(7030);
	ck_assert(due);
	CHUNK(7030, "2000 1:am, 7000 1:am, 7010 1:bm, 7030 1:bm");
}

/* A thread in uninterruptible sleep delays chunks by 5 s at most. */
TEST(settled_tick_stands_still)
{
	size_t chunks = 0;

	sample(1, 0, "am");
	for (uint64_t ms = 0; ms <= 60000; ms += 10) {
		tick_settled(ms, 0);
		if (!due)
			continue;
		OK(aggregate_close(a, 0, &chunk));
		ck_assert_uint_eq(chunk.n_samples, 2);
		ck_assert_uint_eq(chunk.samples[1].time_us - chunk.samples[0].time_us, 1000000);
		OK(aggregate_next(a));
		chunks++;
	}
	ck_assert_uint_eq(chunks, 55);
	play("10 1:bm, 60000");
	CHUNK(60000, "55000 1:bm, 60000 1:bm");
}

TEST(due_at_its_size)
{
	static const char *const words[] = {"am", "bm"};

	open_with(WINDOW_MAX_US, 10000);
	due = false;
	for (uint64_t i = 0; i < 1000 && !due; i++) {
		sample(1, 10 * i, words[i % 2]);
		tick(10 * i);
	}
	ck_assert(due);
	OK(aggregate_close(a, 990 * MS, &chunk));
	/* A sample takes about 80 bytes, and the rest a little more. */
	ck_assert_uint_gt(chunk.n_samples, 90);
	ck_assert_uint_lt(chunk.n_samples, 120);
	OK(aggregate_next(a));
	tick(2000);
	ck_assert(!due);
}

/*
 * If the stacks of all threads are larger than the limit from the start, not every tick ends a
 * chunk.
 */
TEST(first_stacks_above_the_limit)
{
	open_with(1000000, 2000);
	for (uint32_t tid = 1; tid <= 100; tid++)
		sample(tid, 0, "abcdefghijklm");
	tick(0);
	ck_assert(!due); /* not at the tick at which the chunk begins */
	tick(10);
	ck_assert(due);
	OK(aggregate_close(a, 10 * MS, &chunk));
	OK(aggregate_next(a));
	ticks(20, 1000);
	ck_assert(!due);
	tick(1010);
	ck_assert(due);
}

TEST(chunks_without_samples)
{
	CHUNK(0, "");
	ticks(0, 100);
	CHUNK(100, "");
	OK(aggregate_thread(a, 1, false, "x", 1));
	play("110 1:., 110 2:-");
	CHUNK(120, "");
}
