/* Tests the samples of a chunk, the threads of the profile, the table and a second aggregate. */
#include "lib/aggregate/aggregate.h"

#include "lib/aggregate/window.h"
#include "tests/unit/aggregate/script.h"
#include "tests/unit/suite.h"

FIXTURE(set_up, tear_down)

TEST(waits_have_two_samples)
{
	play("0 1:am, 0-40, 50 1:bm, 50, 60 1:am, 60-100");
	CHUNK(100, "0 1:am, 40 1:am, 50 1:bm, 60 1:am, 100 1:am");
}

/* A new sample with the same stack adds no sample to the wait. */
TEST(samples_with_an_unchanged_stack_add_nothing)
{
	for (uint64_t ms = 0; ms <= 40; ms += 10) {
		sample(1, ms, "am");
		tick(ms);
	}
	sample(1, 50, "bm");
	CHUNK(60, "0 1:am, 40 1:am, 50 1:bm, 60 1:bm");
}

/* For readers that count samples. */
TEST(running_threads_have_a_sample_at_each_tick)
{
	for (uint64_t ms = 0; ms <= 40; ms += 10) {
		runs(1, ms, "am");
		tick(ms);
	}
	play("50 1:bm!, 50");
	CHUNK(60, "0 1:am, 10 1:am, 20 1:am, 30 1:am, 40 1:am, 50 1:bm, "
		  "60 1:bm");
}

TEST(runs_and_waits_with_the_same_stack)
{
	play("0 1:am!, 0, 10 1:am!, 10, 20 1:am, 20-50, 60 1:am, 60-70, "
	     "80 1:am!, 80");
	OK(aggregate_state(a, 1, 90 * MS, PROFILE_READY));
	play("90-110, 120 1:am!, 120");
	CHUNK(130, "0 1:am, 10 1:am, 20 1:am, 70 1:am, 80 1:am, 90 1:am, "
		   "110 1:am, 120 1:am, 130 1:am");
}

/* A ready time has two samples, its first and its last, as a wait has. */
TEST(ready_and_waiting_times_have_their_own_samples)
{
	play("0 1:am!, 0, 10 1:am?, 10-40, 50 1:am, 50-80, 90 1:bm?, 90-100, 110 1:bm!, 110");
	CHUNK_STATES(120, "0 1:am!, 10 1:am?, 40 1:am~?, 50 1:am~, 80 1:am, 90 1:bm?, 100 1:bm?, "
			  "110 1:bm!, 120 1:bm!");
	ck_assert_uint_eq(letters_times(a).running_ns, 20 * MS);
	ck_assert_uint_eq(letters_times(a).ready_ns, 60 * MS);
	ck_assert_uint_eq(letters_times(a).waiting_ns, 40 * MS);
}

/* Also if a wait, a ready time and a second wait follow each other, one of them for one tick. */
TEST(a_wait_that_ends_without_a_processor)
{
	play("0 1:am, 0-40");
	OK(aggregate_state(a, 1, 20 * MS, PROFILE_READY));
	play("30 1:am, 50, 60 1:bm!, 60");
	CHUNK_STATES(70, "0 1:am, 10 1:am~, 20 1:am~?, 30 1:am~, 50 1:am, 60 1:bm!, 70 1:bm!");
}

/* A second record at the tick of the change: the sample is no longer only for files. */
TEST(a_change_of_state_that_is_replaced)
{
	play("0 1:am?, 0-10, 20 1:am, 20 1:bm!, 20-30");
	CHUNK_STATES(30, "0 1:am?, 10 1:am~?, 20 1:bm!, 30 1:bm!");
}

/* The next chunk begins in the state in which the last one ended, also after late records. */
TEST(chunks_begin_ready)
{
	play("0 1:am?, 0 2:am, 0-40");
	CHUNK_STATES(30, "0 1:am?, 0 2:am, 30 1:am?, 30 2:am");
	play("50 1:am, 50 2:am?, 50-80");
	CHUNK_STATES(40, "30 1:am?, 30 2:am, 40 1:am?, 40 2:am");
	play("90 1:bm!, 90 2:bm!, 90");
	CHUNK_STATES(100, "40 1:am?, 40 2:am, 50 1:am~, 50 2:am~?, 80 1:am, 80 2:am?, 90 1:bm!, "
			  "90 2:bm!, 100 1:bm!, 100 2:bm!");
}

/*
 * Capture skipped ticks because all threads slept. A thread that it then finds running counts as
 * running from one of those ticks on, and gets a sample at each.
 */
TEST(runs_from_a_skipped_tick_on)
{
	play("0 1:wm, 0-100, 180*8");
	/* Found at 260 ms; counts as running from 220 ms on. */
	play("220 1:am!, 260*8, 270 1:bm!, 270");
	CHUNK(280, "0 1:wm, 180 1:wm, 220 1:am, 230 1:am, 240 1:am, 250 1:am, "
		   "260 1:am, 270 1:bm, 280 1:bm");
}

/* Capture was late at some ticks. The thread has a sample at each of them. */
TEST(runs_over_late_ticks)
{
	play("0 1:am!, 0, 40 1:bm!, 40*4, 80 1:-, 80*4, 120 1:cm!, 120*4, "
	     "140*2");
	CHUNK(140, "0 1:am, 40 1:bm, 80 1:-, 120 1:cm, 130 1:cm, 140 1:cm");
	play("170 1:., 170*3");
	CHUNK(180, "140 1:cm, 170 1:cm");
}

/* The last sample of a wait is the same, whether the record or the tick of its end comes first. */
TEST(samples_before_and_after_their_tick)
{
	play("0, 0 1:am, 10-30, 30 1:bm, 40 1:cm, 40");
	CHUNK(50, "0 1:am, 20 1:am, 30 1:bm, 40 1:cm, 50 1:cm");
}

/* Thread 1 takes three ticks to stop for the sample of 10 ms. */
TEST(late_sample)
{
	play("0 1:am, 0 2:bm, 0, 10 2:cm, 10~0, 20~0, 30~0, 10 1:dm, 40");
	CHUNK(40, "0 1:am, 0 2:bm, 10 1:dm, 10 2:cm, 40 1:dm, 40 2:cm");
}

TEST(exits_add_a_copy_of_the_stack)
{
	play("0 1:am, 0-30, 30 1:.");
	sample(2, 30, "bm"); /* the thread lives for one tick */
	play("40 2:., 40-60");
	CHUNK(60, "0 1:am, 30 1:am, 30 2:bm, 40 2:bm");
	ticks(70, 80);
	CHUNK(80, "");
}

TEST(missed_threads_have_an_empty_stack)
{
	play("0 1:am, 0-30, 40 1:-, 50 1:-, 40-60");
	CHUNK(60, "0 1:am, 30 1:am, 40 1:-");
	/* An unknown stack is not carried over to the next chunk. */
	play("70 1:-, 70, 80 1:am, 80-90");
	CHUNK(90, "80 1:am, 90 1:am");
}

/* The kernel gives the tid of a dead thread to a new thread. */
TEST(tid_is_reused)
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

TEST(invalid_options)
{
	const struct aggregate_options too_long = {
		.chunk_us = WINDOW_MAX_US + 1,
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

/* A thread without a processor keeps its stack, and its time counts as ready. */
TEST(a_preempted_thread_is_ready)
{
	play("0 1:am!, 0-30");
	OK(aggregate_state(a, 1, 10 * MS, PROFILE_READY));
	play("40 1:bm!, 40-60");
	CHUNK(60, "0 1:am, 10 1:am, 30 1:am, 40 1:bm, 50 1:bm, 60 1:bm");
	ck_assert_uint_eq(letters_times(a).running_ns, (10 + 20) * MS);
	ck_assert_uint_eq(letters_times(a).ready_ns, 30 * MS);
	ck_assert_uint_eq(letters_times(a).waiting_ns, 0);
	/* A record of a thread that has ended is ignored. */
	exits(1, 70);
	OK(aggregate_state(a, 1, 80 * MS, PROFILE_READY));
	tick(90);
	ck_assert_uint_eq(letters_times(a).ready_ns, 30 * MS);
}

/*
 * Of a thread that ran at a tick unseen, the last running stack is the best guess. Where the chunk
 * has none, the time is not lost, and the stack is no guess for later ticks.
 */
TEST(a_thread_runs_where_it_was_last_seen_to_run)
{
	play("0 1:am!, 0-10");
	OK(aggregate_sample(a, 1, 20 * MS, letters_stack("bm"), PROFILE_WAITING));
	play("20-30");
	OK(aggregate_running(a, 1, 40 * MS));
	play("40");
	OK(aggregate_sample(a, 1, 50 * MS, letters_stack("bm"), PROFILE_WAITING));
	play("50-60");
	CHUNK(60, "0 1:am, 10 1:am, 20 1:bm, 30 1:bm, 40 1:am, 50 1:bm, 60 1:bm");
	ck_assert_uint_eq(letters_times(a).running_ns, (20 + 10) * MS);
	OK(aggregate_running(a, 1, 70 * MS));
	play("70");
	OK(aggregate_sample(a, 1, 80 * MS, letters_stack("bm"), PROFILE_WAITING));
	play("80");
	OK(aggregate_sample(a, 1, 90 * MS, letters_stack("cm"), PROFILE_WAITING));
	OK(aggregate_running(a, 1, 90 * MS));
	play("90-110");
	CHUNK(110, "60 1:bm, 70 1:bm, 80 1:bm, 90 1:cm, 100 1:cm, 110 1:cm");
	ck_assert_uint_eq(letters_times(a).running_ns, (20 + 10 + 10 + 20) * MS);
}

/* A thread's time counts as running until a record says that the thread waits. */
TEST(times_in_the_table)
{
	OK(aggregate_sample(a, 1, 0, letters_stack("am"), PROFILE_RUNNING));
	tick(0);
	OK(aggregate_sample(a, 1, 30 * MS, letters_stack("am"), PROFILE_WAITING));
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
	OK(aggregate_update_table(a));
	OK(functions_write(&letters_table, 10, false, f));
	HAS(text, "CPU time 0.50 s,");
	ticks(510, 1000);
	OK(aggregate_close(a, 1000 * MS, &chunk));
	ck_assert_uint_eq(chunk.n_samples, 101);
	OK(aggregate_next(a));
	rewind(f);
	OK(aggregate_update_table(a));
	OK(functions_write(&letters_table, 10, false, f));
	HAS(text, "CPU time 1.00 s,");
	(void)fclose(f);
	free(text);
}

/* A process counts once for each program that it has time in. */
TEST(two_processes_share_a_table)
{
	const struct aggregate_options options = {
		.chunk_us = 1000000,
		.chunk_bytes = 20000000,
		.main_path = "/bin/other",
		.main_argv0 = "",
		.table = &letters_table,
	};
	struct aggregate *other;
	const struct programs *p = &letters_table.programs;

	OK(aggregate_new(&options, &space, &other));
	OK(aggregate_sample(other, 1, 0, letters_stack("a"), PROFILE_RUNNING));
	ck_assert(!aggregate_tick(other, 500 * MS, 500 * MS, 1));
	OK(aggregate_update_table(other));
	ck_assert(!aggregate_tick(other, 600 * MS, 600 * MS, 1));
	OK(aggregate_update_table(other));
	play("0 1:am!, 0-500");
	OK(aggregate_close(a, 500 * MS, &chunk));
	OK(aggregate_next(a));
	aggregate_exec(a, &space, "/bin/other", "");
	play("510 1:am!, 510-800");
	OK(aggregate_close(a, 800 * MS, &chunk));
	OK(aggregate_next(a));
	aggregate_exec(a, &space, "/usr/bin/other", "");
	play("810 1:am!, 810-900");
	OK(aggregate_update_table(a));
	aggregate_free(other);
	ck_assert_uint_eq(p->n, 2);
	ck_assert_str_eq(p->rows[0].name, "other");
	ck_assert_uint_eq(p->rows[0].n_processes, 2);
	ck_assert_uint_eq(p->rows[0].ns[PROFILE_RUNNING], (600 + 400) * MS);
	ck_assert_str_eq(p->rows[1].name, "a-program-of-a-long-name");
	ck_assert_uint_eq(p->rows[1].n_processes, 1);
	ck_assert_uint_eq(p->rows[1].ns[PROFILE_RUNNING], 500 * MS);
}

static const struct aggregate_options half_a_second = {
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
TEST(second_aggregate)
{
	struct aggregate *first = a, *second;

	play("0 1:am, 0 2:bm!, 0 3:cm");
	OK(aggregate_thread(a, 1, false, "worker", 7));
	play("0-90, 100 2:bm!, 100 3:., 100");
	OK(aggregate_new_beside(first, &half_a_second, &second));
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
/* The stack where a thread ran last is copied, too: a node of the first aggregate is none of the
 * second. */
TEST(second_aggregate_knows_where_threads_ran)
{
	struct aggregate *first = a, *second;

	/* The nodes of thread 2, which ends, come first. */
	runs(2, 0, "dcbam");
	runs(1, 0, "em");
	tick(0);
	exits(2, 10);
	sample(1, 10, "fm");
	tick(10);
	OK(aggregate_new_beside(first, &half_a_second, &second));
	a = second;
	OK(aggregate_running(a, 1, 20 * MS));
	tick(20);
	sample(1, 30, "fm");
	tick(30);
	OK(aggregate_close(a, 40 * MS, &chunk));
	ck_assert_str_eq(letters_samples(&chunk), "10 1:fm, 20 1:em, 30 1:fm, 40 1:fm");
	aggregate_free(a);
	a = first;
}

TEST(second_aggregate_before_the_first_tick)
{
	struct aggregate *first = a, *second;

	OK(aggregate_new_beside(first, &half_a_second, &second));
	a = second;
	play("10 1:am!, 10");
	CHUNK(20, "10 1:am, 20 1:am");
	aggregate_free(a);
	a = first;
}
