#include "lib/aggregate/aggregate.h"

#include <check.h>
#include <stdlib.h>

#include "lib/aggregate/period.h"
#include "lib/base/buf.h"
#include "tests/unit/aggregate/fake_unwind.h"
#include "tests/unit/aggregate/letters.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define MS NS_PER_MS

static const struct fake_symbol symbols[] = {{0x10000, 0x12000, "some"}};
static struct unwind_space space;
static struct aggregate *a;
static struct profile chunk;
static bool due;

static void open_with(uint64_t chunk_us, size_t chunk_bytes)
{
	const struct aggregate_options options = {
		.chunk_us = chunk_us,
		.chunk_bytes = chunk_bytes,
		.wall_offset_us = LETTERS_WALL_US,
		.main_path = "/opt/a-program-of-a-long-name",
		.main_argv0 = "",
	};

	aggregate_free(a);
	a = NULL;
	OK(aggregate_new(&options, &space, &a));
}

static void set_up(void)
{
	space = (struct unwind_space){.symbols = symbols, .n_symbols = 1};
	open_with(1000000, 20000000);
}

static void tear_down(void)
{
	aggregate_free(a);
	a = NULL;
}

/* Adds a sample of a waiting thread with this stack. */
static void sample(uint32_t tid, uint64_t ms, const char *word)
{
	OK(aggregate_sample(a, tid, ms * MS, letters_stack(word), false));
}

static void runs(uint32_t tid, uint64_t ms, const char *word)
{
	OK(aggregate_sample(a, tid, ms * MS, letters_stack(word), true));
}

static void missed(uint32_t tid, uint64_t ms)
{
	OK(aggregate_missed(a, tid, ms * MS));
}

static void gone(uint32_t tid, uint64_t ms)
{
	OK(aggregate_exit(a, tid, ms * MS));
}

static void tick_settled(uint64_t ms, uint64_t settled_ms)
{
	due = aggregate_tick(a, ms * MS, settled_ms * MS, 1);
}

/* Adds a tick that is the n-th since the last one; the others were skipped. */
static void tick_after(uint64_t n, uint64_t ms)
{
	due = aggregate_tick(a, ms * MS, ms * MS, n);
}

static void tick(uint64_t ms)
{
	tick_settled(ms, ms);
}

static void ticks(uint64_t from_ms, uint64_t to_ms)
{
	for (; from_ms <= to_ms; from_ms += 10)
		tick(from_ms);
}

static void play_thread(uint64_t ms, uint32_t tid, const char *word, size_t n)
{
	char stack[32] = "";

	ck_assert_uint_lt(n, sizeof(stack));
	memcpy(stack, word, n);
	if (strcmp(stack, "-") == 0)
		missed(tid, ms);
	else if (strcmp(stack, ".") == 0)
		gone(tid, ms);
	else if (word[n] == '!')
		runs(tid, ms, stack);
	else
		sample(tid, ms, stack);
}

/*
 * Plays records of capture. The notation is that of letters_samples(), and also:
 *	10 1:am!	thread 1 runs
 *	10 1:-, 10 1:.	the thread is missed; the thread has ended
 *	10, 10-40	a tick; a tick every 10 ms
 *	40~20, 40*3	a tick with its settled time; the third tick since the last one
 */
static void play(const char *script)
{
	while (*script != '\0') {
		char *at;
		const uint64_t ms = strtoull(script, &at, 10);
		const char kind = *at;
		const uint64_t n =
			strchr(" -~*", kind) && kind != '\0' ? strtoull(at + 1, &at, 10) : 0;
		const size_t word = kind == ' ' ? strcspn(++at, "!,") : 0;

		if (kind == ' ')
			play_thread(ms, (uint32_t)n, at, word);
		else if (kind == '-')
			ticks(ms, n);
		else if (kind == '~')
			tick_settled(ms, n);
		else if (kind == '*')
			tick_after(n, ms);
		else
			tick(ms);
		at += word;
		at += strspn(at, "!, ");
		ck_assert_ptr_ne(at, script);
		script = at;
	}
}

/* Closes the chunk, compares its samples, and opens the next chunk. */
#define CHUNK(end_ms, expected)                                      \
	do {                                                         \
		OK(aggregate_close(a, (end_ms)*MS, &chunk));         \
		ck_assert_str_eq(letters_samples(&chunk), expected); \
		OK(aggregate_next(a));                               \
	} while (0)

FIXTURE(set_up, tear_down)

TEST(wait_is_first_and_last)
{
	play("0 1:am, 0-40, 50 1:bm, 50, 60 1:am, 60-100");
	CHUNK(100, "0 1:am, 40 1:am, 50 1:bm, 60 1:am, 100 1:am");
}

/* A new sample with the same stack adds no sample to the wait. */
TEST(repeated_samples)
{
	for (uint64_t ms = 0; ms <= 40; ms += 10) {
		sample(1, ms, "am");
		tick(ms);
	}
	sample(1, 50, "bm");
	CHUNK(60, "0 1:am, 40 1:am, 50 1:bm, 60 1:bm");
}

/* Readers that count samples get one of a running thread at each tick. */
TEST(running_thread_has_a_sample_a_tick)
{
	for (uint64_t ms = 0; ms <= 40; ms += 10) {
		runs(1, ms, "am");
		tick(ms);
	}
	play("50 1:bm!, 50");
	CHUNK(60, "0 1:am, 10 1:am, 20 1:am, 30 1:am, 40 1:am, 50 1:bm, "
		  "60 1:bm");
}

/* A thread runs, waits and runs again, all with the same stack. */
TEST(runs_and_waits_in_one_place)
{
	play("0 1:am!, 0, 10 1:am!, 10, 20 1:am, 20-50, 60 1:am, 60-70, "
	     "80 1:am!, 80");
	OK(aggregate_waiting(a, 1, 90 * MS));
	play("90-110, 120 1:am!, 120");
	CHUNK(130, "0 1:am, 10 1:am, 20 1:am, 70 1:am, 80 1:am, 90 1:am, "
		   "110 1:am, 120 1:am, 130 1:am");
}

/*
 * Capture skipped ticks because all threads slept. A thread that it then finds running counts as
 * running from one of those ticks on, and gets a sample at each.
 */
TEST(runs_since_a_tick_that_was_left_out)
{
	play("0 1:wm, 0-100, 180*8");
	/* Found at 260 ms; counts as running from 220 ms on. */
	play("220 1:am!, 260*8, 270 1:bm!, 270");
	CHUNK(280, "0 1:wm, 180 1:wm, 220 1:am, 230 1:am, 240 1:am, 250 1:am, "
		   "260 1:am, 270 1:bm, 280 1:bm");
}

/* Capture was late. The thread ran on, both by time and by the number of samples. */
TEST(runs_over_ticks_that_came_late)
{
	play("0 1:am!, 0, 40 1:bm!, 40*4, 80 1:-, 80*4, 120 1:cm!, 120*4, "
	     "140*2");
	CHUNK(140, "0 1:am, 40 1:bm, 80 1:-, 120 1:cm, 130 1:cm, 140 1:cm");
	play("170 1:., 170*3");
	CHUNK(180, "140 1:cm, 170 1:cm");
}

/* The last sample of a run is the same whether its tick or the next record came first. */
TEST(samples_before_and_behind_their_tick)
{
	play("0, 0 1:am, 10-30, 30 1:bm, 40 1:cm, 40");
	CHUNK(50, "0 1:am, 20 1:am, 30 1:bm, 40 1:cm, 50 1:cm");
}

/* A thread whose stop took three ticks. */
TEST(late_sample)
{
	play("0 1:am, 0 2:bm, 0, 10 2:cm, 10~0, 20~0, 30~0, 10 1:dm, 40");
	CHUNK(40, "0 1:am, 0 2:bm, 10 1:dm, 10 2:cm, 40 1:dm, 40 2:cm");
}

TEST(exit_leaves_a_copy)
{
	play("0 1:am, 0-30, 30 1:.");
	sample(2, 30, "bm"); /* the thread lives for one tick */
	play("40 2:., 40-60");
	CHUNK(60, "0 1:am, 30 1:am, 30 2:bm, 40 2:bm");
	ticks(70, 80);
	CHUNK(80, "");
}

TEST(missed_is_not_known)
{
	play("0 1:am, 0-30, 40 1:-, 50 1:-, 40-60");
	CHUNK(60, "0 1:am, 30 1:am, 40 1:-");
	/* An unknown stack is not carried over to the next chunk. */
	play("70 1:-, 70, 80 1:am, 80-90");
	CHUNK(90, "80 1:am, 90 1:am");
}

/* The chunk had waited for the sample of a thread, and the sample was then missed. */
TEST(missed_from_the_start)
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

TEST(chunks_join)
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
TEST(samples_behind_the_end)
{
	play("0 1:am, 0-30, 40 1:bm, 40 2:cm, 40~20, 50 1:-, 60 1:dm, "
	     "60~20");
	CHUNK(20, "0 1:am, 20 1:am");
	tick(70);
	CHUNK(70, "20 1:am, 30 1:am, 40 1:bm, 40 2:cm, 50 1:-, 60 1:dm, "
		  "70 1:dm, 70 2:cm");
}

TEST(sample_at_the_end)
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

TEST(exit_behind_the_end)
{
	play("0 1:am, 0-30, 30 1:.");
	CHUNK(20, "0 1:am, 20 1:am");
	ticks(40, 50);
	CHUNK(50, "20 1:am, 30 1:am");
	tick(60);
	CHUNK(60, "");
}

/*
 * Capture died, or unwind was stopped: the threads' state is unknown until capture is back. What
 * was known before stays.
 */
static void interrupted(uint64_t ms)
{
	OK(aggregate_exit_all(a, ms * MS));
}

static void announced(uint32_t tid, const char *name)
{
	OK(aggregate_thread(a, tid, false, name, strlen(name)));
}

TEST(interrupted_and_resumed)
{
	play("0 1:am, 20 2:bm, 0-30");
	interrupted(30);
	announced(1, "one");
	announced(2, "two");
	play("100 1:am, 100 2:cm, 100-120");
	CHUNK(120, "0 1:am, 20 1:am, 20 2:bm, 30 1:-, 30 2:-, 100 1:am, "
		   "100 2:cm, 120 1:am, 120 2:cm");
}

/* The first tick afterwards ends the chunk. Names are recorded only once. */
TEST(names_after_an_interruption)
{
	play("0 1:am, 0-900");
	interrupted(900);
	announced(1, "one");
	tick(1100);
	CHUNK(1100, "0 1:am, 890 1:am, 900 1:-");
	play("1110 1:am, 1110-1130");
	OK(aggregate_close(a, 1130 * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk), "1110 1:am, 1130 1:am");
	ck_assert_str_eq(chunk.threads[0].name, "one");
}

/* The same with a gap, at which the chunk ends. */
TEST(names_after_a_long_interruption)
{
	play("0 1:am, 0-100");
	interrupted(100);
	announced(1, "one");
	tick(9000);
	CHUNK(9000, "0 1:am, 90 1:am, 100 1:am");
	play("9010 1:am, 9010-9030");
	OK(aggregate_close(a, 9030 * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk), "9010 1:am, 9030 1:am");
	ck_assert_str_eq(chunk.threads[0].name, "one");
}

/* The kernel gives the tid of a dead thread to a new thread. */
TEST(tid_used_again)
{
	OK(aggregate_thread(a, 1, false, "old", 3));
	play("0 1:am, 0-20, 20 1:., 30");
	OK(aggregate_thread(a, 1, false, "new", 3));
	play("50 1:bm, 50-60");
	CHUNK(60, "0 1:am, 10 1:am, 20 1:-, 50 1:bm, 60 1:bm");
	play("70 1:., 70");
	CHUNK(70, "60 1:bm, 70 1:bm");
	play("80 1:cm, 80-90");
	CHUNK(90, "80 1:cm, 90 1:cm");
}

/* A sample from before the open chunk counts from the chunk's start on. */
TEST(sample_from_before_the_chunk)
{
	play("0 1:am, 0-50");
	CHUNK(50, "0 1:am, 50 1:am");
	sample(1, 30, "bm");
	sample(2, 40, "cm"); /* also the first sample of a thread */
	ticks(60, 70);
	CHUNK(70, "50 1:bm, 50 2:cm, 70 1:bm, 70 2:cm");
}

TEST(due_by_time)
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
TEST(gap)
{
	open_with(PERIOD_CHUNK_MAX_US, 20000000);
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

/* The chunk is closed at a time before the gap. The gap ends the chunk. */
TEST(close_before_the_gap)
{
	play("0 1:am, 0-100, 9000~100");
	/* Samples older than 5 s are not awaited, even if the tick is not settled. */
	CHUNK(50, "0 1:am, 100 1:am");
	tick(9010);
	CHUNK(9010, "9000 1:am, 9010 1:am");
}

/* If the settled tick advances far at once, the chunk is still not longer than its limit. */
TEST(settled_leaps)
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
TEST(settled_stands_still)
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

TEST(due_by_bytes)
{
	static const char *const words[] = {"am", "bm"};

	open_with(PERIOD_CHUNK_MAX_US, 10000);
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
TEST(large_from_the_start)
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

TEST(threads_in_the_profile)
{
	static const char odd[16] = {'t', '\x1b', '\xff', '\xc3', '\xa4', 0, 'x'};

	OK(aggregate_thread(a, 30, true, "a-program-of-a-", 16));
	OK(aggregate_thread(a, 20, false, odd, 16));
	OK(aggregate_thread(a, 25, false, "no samples", 10));
	play("0 30:am, 0 10:am, 0 20:am, 0-10");
	OK(aggregate_close(a, 10 * MS, &chunk));
	ck_assert_uint_eq(chunk.n_threads, 3);
	ck_assert_uint_eq(chunk.threads[0].tid, 10);
	ck_assert_str_eq(chunk.threads[0].name, "");
	ck_assert_uint_eq(chunk.threads[1].tid, 20);
	ck_assert_str_eq(chunk.threads[1].name, "t\xef\xbf\xbd\xef\xbf\xbd\xc3\xa4");
	ck_assert_uint_eq(chunk.threads[2].tid, 30);
	ck_assert_str_eq(chunk.threads[2].name, "main");
}

TEST(nothing_happened)
{
	CHUNK(0, "");
	ticks(0, 100);
	CHUNK(100, "");
	OK(aggregate_thread(a, 1, false, "x", 1));
	play("110 1:., 110 2:-");
	CHUNK(120, "");
}

TEST(options)
{
	const struct aggregate_options too_long = {
		.chunk_us = PERIOD_CHUNK_MAX_US + 1,
		.main_path = "",
		.main_argv0 = "",
	};
	const struct aggregate_options nothing = {.main_path = "", .main_argv0 = ""};
	struct aggregate *other = NULL;

	ck_assert_int_eq(aggregate_new(&too_long, &space, &other), -EINVAL);
	ck_assert_int_eq(aggregate_new(&nothing, &space, &other), -EINVAL);
	ck_assert_ptr_null(other);
	aggregate_free(NULL);
}

/* A thread that waits for a processor keeps its stack, and its time counts as waiting. */
TEST(waiting)
{
	play("0 1:am!, 0-30");
	OK(aggregate_waiting(a, 1, 10 * MS));
	play("40 1:bm!, 40-60");
	CHUNK(60, "0 1:am, 10 1:am, 30 1:am, 40 1:bm, 50 1:bm, 60 1:bm");
	ck_assert_uint_eq(letters_times(a).running_ns, (10 + 20) * MS);
	ck_assert_uint_eq(letters_times(a).waiting_ns, 30 * MS);
	/* A record of a thread that has ended is ignored. */
	gone(1, 70);
	OK(aggregate_waiting(a, 1, 80 * MS));
	tick(90);
	ck_assert_uint_eq(letters_times(a).waiting_ns, 30 * MS);
}

/* The thread's time counts as running until a record says that it waits, whatever its stack is. */
TEST(totals)
{
	OK(aggregate_sample(a, 1, 0, letters_stack("am"), true));
	tick(0);
	OK(aggregate_sample(a, 1, 30 * MS, letters_stack("am"), false));
	play("10-100, 110 1:-, 150 1:am!, 170 1:.");
	ck_assert_uint_eq(letters_times(a).running_ns, 50 * MS);
	ck_assert_uint_eq(letters_times(a).waiting_ns, 80 * MS);
	CHUNK(200, "0 1:am, 30 1:am, 100 1:am, 110 1:-, 150 1:am, 170 1:am");
	ck_assert_uint_eq(letters_times(a).running_ns, 50 * MS);
	ck_assert_uint_eq(letters_times(a).waiting_ns, 80 * MS);
}

/*
 * A table that is written in the middle of a chunk has the settled times, and does not change the
 * chunk.
 */
TEST(table_of_an_open_chunk)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	play("0 1:am!, 0-500");
	OK(aggregate_write_table(a, 10, f));
	HAS(text, "CPU time 0.50 s,");
	ticks(510, 1000);
	OK(aggregate_close(a, 1000 * MS, &chunk));
	ck_assert_uint_eq(chunk.n_samples, 101);
	OK(aggregate_next(a));
	rewind(f);
	OK(aggregate_write_table(a, 10, f));
	HAS(text, "CPU time 1.00 s,");
	(void)fclose(f);
	free(text);
}

#define LIKE_THREADS 3
#define LIKE_STEPS   400

/* Each thread's last stack, and its id. */
static struct {
	char word[16];
	uint64_t id;
} lasts[LIKE_THREADS];

/* Returns the number of frames that word and the thread's last stack share at the root. */
static size_t common(size_t thread, const char *word)
{
	const char *last = lasts[thread].word;
	size_t n = strlen(word), m = strlen(last), same = 0;

	if (strcmp(word, last) == 0)
		return n;
	/* A leaf and a caller are different frames. */
	while (same + 1 < n && same + 1 < m && word[n - 1 - same] == last[m - 1 - same])
		same++;
	return same;
}

/* Adds a random stack. with_ids: tells what it shares with the last one. */
static void like_sample(uint64_t *random, uint64_t ms, bool with_ids)
{
	static uint64_t id;
	size_t thread = random_next(random) % LIKE_THREADS;
	size_t other = random_next(random) % LIKE_THREADS;
	size_t n = 1 + random_next(random) % 6;
	struct unwind_stack *stack;
	char word[16] = "";

	for (size_t i = 0; i < n; i++)
		word[i] = "ab"[random_next(random) % 2];
	word[n] = 'm';
	stack = (struct unwind_stack *)(uintptr_t)letters_stack(word);
	if (with_ids) {
		/* The id of another thread's stack is useless and harmless. */
		stack->shared_id = lasts[other].id;
		stack->shared_n = stack->shared_id == 0 ? 0 : common(other, word);
		stack->id = ++id;
	}
	OK(aggregate_sample(a, 1 + (uint32_t)thread, ms * MS, stack, true));
	memcpy(lasts[thread].word, word, sizeof(word));
	lasts[thread].id = stack->id;
	stack->id = stack->shared_id = stack->shared_n = 0;
}

static char *like_run(uint64_t random, bool with_ids)
{
	struct buf text;

	buf_init(&text, 1u << 20);
	memset(lasts, 0, sizeof(lasts));
	open_with(1000000, 20000000);
	for (uint64_t i = 1; i < LIKE_STEPS; i++) {
		uint32_t tid = 1 + (uint32_t)(random_next(&random) % LIKE_THREADS);

		tick(10 * i);
		like_sample(&random, 10 * i, with_ids);
		switch (random_next(&random) % 16) {
		case 0:
			missed(tid, 10 * i + 10);
			break;
		case 1:
			gone(tid, 10 * i + 10);
			break;
		case 2:
			OK(aggregate_close(a, 10 * i * MS, &chunk));
			OK(buf_add_string(&text, letters_samples(&chunk)));
			OK(aggregate_next(a));
			break;
		default:
			break;
		}
	}
	ck_assert_uint_gt(text.len, LIKE_STEPS);
	return text.data;
}

/* The result is the same with and without the shared part. */
TESTS(like_the_last, 20)
{
	char *without = like_run((uint64_t)_i, false);
	char *with = like_run((uint64_t)_i, true);

	ck_assert_str_eq(with, without);
	free(with);
	free(without);
}

static const struct aggregate_options of_a_second = {
	.chunk_us = 500000,
	.chunk_bytes = 20000000,
	.wall_offset_us = LETTERS_WALL_US,
	.main_path = "",
	.main_argv0 = "",
};

/*
 * The second aggregate begins with the threads' current stacks, also that of a waiting thread,
 * which gets no further sample. Threads that have ended are not in it. The first aggregate gives
 * the same chunks as alone.
 */
TEST(beside_another)
{
	struct aggregate *first = a, *second;

	play("0 1:am, 0 2:bm!, 0 3:cm");
	OK(aggregate_thread(a, 1, false, "worker", 7));
	play("0-90, 100 2:bm!, 100 3:., 100");
	OK(aggregate_new_beside(first, &of_a_second, &second));
	for (uint64_t ms = 110; ms <= 120; ms += 10) {
		for (int i = 0; i < 2; i++) {
			a = i == 0 ? first : second;
			runs(2, ms, ms == 110 ? "bm" : "dm");
			tick(ms);
		}
	}
	a = second;
	OK(aggregate_close(a, 130 * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk),
			 "100 1:am, 100 2:bm, 110 2:bm, 120 2:dm, 130 1:am, "
			 "130 2:dm");
	ck_assert_uint_eq(chunk.n_threads, 2);
	ck_assert_str_eq(chunk.threads[0].name, "worker");
	aggregate_free(a);
	a = first;
	CHUNK(130, "0 1:am, 0 2:bm, 0 3:cm, 10 2:bm, 20 2:bm, 30 2:bm, "
		   "40 2:bm, 50 2:bm, 60 2:bm, 70 2:bm, 80 2:bm, 90 2:bm, "
		   "100 2:bm, 100 3:cm, 110 2:bm, 120 2:dm, 130 1:am, 130 2:dm");
}

/* A second aggregate for a target that has no tick yet. */
TEST(beside_one_without_a_tick)
{
	struct aggregate *first = a, *second;

	OK(aggregate_new_beside(first, &of_a_second, &second));
	a = second;
	play("10 1:am!, 10");
	CHUNK(20, "10 1:am, 20 1:am");
	aggregate_free(a);
	a = first;
}
