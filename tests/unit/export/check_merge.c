#include "proto/export/merge.h"

#include <string.h>

#include "tests/unit/export/made_chunks.h"
#include "tests/unit/suite.h"

static struct merge_options options;
static struct merge m;

static void set_up(void)
{
	options = (struct merge_options){
		.is_ordered = true,
		.until_ns = UINT64_MAX,
	};
}

static void tear_down(void)
{
	merge_fini(&m);
}

#define FIRST                          \
	MADE_RUNS("100.0", "7", "1")   \
	MADE_WAITS("100.25", "7", "2") \
	MADE_RUNS("100.25", "8", "0")  \
	MADE_END("100.5", "8", "3") "," MADE_END("101.0", "7", "2")
#define SECOND                       \
	MADE_RUNS("101.0", "7", "1") \
	MADE_RUNS("101.5", "7", "3") \
	MADE_END("102.0", "7", "3")

static void add_first(void)
{
	made_add(&m, "p", "a", FIRST, "\"7\":{\"name\":\"old\"}");
}

static void add_second(void)
{
	made_add(&m, "p", "b", SECOND, "\"7\":{\"name\":\"main\"}");
}

static void add_both(void)
{
	merge_init(&m, &options);
	add_first();
	add_second();
	OK(merge_finish(&m));
}

static uint64_t total_ms(void)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < m.n_bars; i++)
		ns += m.bars[i].duration_ns;
	return ns / NS_PER_MS;
}

static uint64_t samples(void)
{
	uint64_t n = 0;

	for (size_t i = 0; i < m.n_bars; i++)
		n += m.bars[i].samples;
	return n;
}

static void check_bar(size_t i, uint64_t start_ms, uint64_t lasts_ms, enum profile_state state)
{
	ck_assert_uint_eq(m.bars[i].start_ns, start_ms * NS_PER_MS);
	ck_assert_uint_eq(m.bars[i].duration_ns, lasts_ms * NS_PER_MS);
	ck_assert_int_eq(m.bars[i].state, state);
}

FIXTURE(set_up, tear_down)

TESTS(chunks_are_merged_in_any_order, 2)
{
	merge_init(&m, &options);
	if (_i == 0)
		add_first();
	add_second();
	if (_i == 1)
		add_first();
	OK(merge_finish(&m));

	ck_assert_uint_eq(m.n_processes, 1);
	ck_assert_uint_eq(m.n_threads, 2);
	ck_assert_uint_eq(m.n_bars, 4);
	for (size_t i = 0; i < m.n_threads; i++) {
		const struct merge_thread *t = &m.threads[i];

		if (strcmp(t->id, "8") == 0) {
			ck_assert_str_eq(t->label, "8");
			ck_assert_uint_eq(t->n_bars, 1);
			check_bar(t->first_bar, 100250, 250, PROFILE_RUNNING);
			continue;
		}
		ck_assert_str_eq(t->label, "main");
		ck_assert_uint_eq(t->n_bars, 3);
		check_bar(t->first_bar, 100000, 250, PROFILE_RUNNING);
		check_bar(t->first_bar + 1, 100250, 750, PROFILE_WAITING);
		check_bar(t->first_bar + 2, 101000, 500, PROFILE_RUNNING);
	}
	ck_assert_str_eq(m.processes[0].pid, "7");
	ck_assert_uint_eq(m.processes[0].n_images, 2);
	ck_assert_uint_eq(m.start_ns, 100 * NS_PER_SEC);
	ck_assert_uint_eq(m.end_ns, 102 * NS_PER_SEC);
	ck_assert_uint_eq(m.overlap_ns, 0);
	ck_assert(m.has_states && !m.lacks_states);
}

/* All threads of a program with the name main are called main. */
TEST(of_several_threads_called_main_the_one_with_the_lowest_id_gives_the_pid)
{
	merge_init(&m, &options);
	made_add(&m, "p", "a",
		 MADE_RUNS("100.0", "998", "0") MADE_RUNS("100.0", "999", "0")
			 MADE_RUNS("100.0", "1000", "0") MADE_END("101.0", "1000", "0"),
		 "\"998\":{\"name\":\"worker\"},\"999\":{\"name\":\"main (999)\"},"
		 "\"1000\":{\"name\":\"main (1000)\"}");
	OK(merge_finish(&m));
	ck_assert_str_eq(m.processes[0].pid, "999");
}

TEST(the_address_of_a_thread_is_no_pid)
{
	merge_init(&m, &options);
	made_add(&m, "p", "a",
		 MADE_RUNS("100.0", "140737353967424", "0")
			 MADE_END("101.0", "140737353967424", "0"),
		 "\"140737353967424\":{\"name\":\"main\"}");
	OK(merge_finish(&m));
	ck_assert_str_eq(m.processes[0].main_thread, "140737353967424");
	ck_assert_ptr_null(m.processes[0].pid);
}

/* A process that executes another program has one profiler_id. */
TEST(the_programs_of_a_process_are_kept_apart)
{
	merge_init(&m, &options);
	made_release = "sh@1";
	made_add(&m, "p", "a", MADE_RUNS("100.0", "7", "0") MADE_END("101.0", "7", "0"), "");
	made_release = "cc1plus@2";
	made_add(&m, "p", "b", MADE_RUNS("101.0", "7", "0") MADE_END("103.0", "7", "0"), "");
	made_add(&m, "p", "c", MADE_RUNS("103.0", "7", "0") MADE_END("104.0", "7", "0"), "");
	made_release = "app@1";
	OK(merge_finish(&m));
	ck_assert_uint_eq(m.n_processes, 2);
	ck_assert_uint_eq(m.n_threads, 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct merge_thread *t = &m.threads[i];

		ck_assert_str_eq(m.processes[i].profiler_id, "p");
		ck_assert_str_eq(m.processes[i].release, i == 0 ? "sh@1" : "cc1plus@2");
		ck_assert_uint_eq(t->process, i);
		ck_assert_str_eq(t->label, i == 0 ? "7 (7, p, sh@1)" : "7 (7, p, cc1plus@2)");
		ck_assert_uint_eq(t->n_bars, i == 0 ? 1 : 2);
		check_bar(t->first_bar, i == 0 ? 100000 : 101000, i == 0 ? 1000 : 2000,
			  PROFILE_RUNNING);
	}
}

TEST(without_order_bars_are_added_up)
{
	options.is_ordered = false;
	add_both();
	ck_assert_uint_eq(m.n_bars, 3);
	ck_assert_uint_eq(total_ms(), 1750);
	ck_assert_uint_eq(samples(), 4);
	/* The thread's stack 1 of both chunks. */
	ck_assert_uint_eq(m.bars[0].duration_ns, 750 * NS_PER_MS);
	ck_assert_uint_eq(m.bars[0].samples, 2);
}

TESTS(bars_are_selected_by_state, 2)
{
	options.is_ordered = _i == 0;
	options.states = MERGE_WAITING;
	add_both();
	ck_assert_uint_eq(total_ms(), 750);
	merge_fini(&m);
	options.states = MERGE_RUNNING;
	add_both();
	ck_assert_uint_eq(total_ms(), 1000);
	merge_fini(&m);
	options.states = MERGE_READY;
	add_both();
	ck_assert_uint_eq(total_ms(), 0);
}

#define READY_AND_WAITING              \
	MADE_READY("100.0", "7", "2")  \
	MADE_WAITS("100.25", "7", "2") \
	MADE_READY("101.0", "7", "2") MADE_END("101.25", "7", "2")

/* With the same stack: in order and as sums. */
TESTS(ready_and_waiting_are_told_apart, 2)
{
	options.is_ordered = _i == 0;
	for (enum merge_states states = MERGE_ALL; states <= MERGE_WAITING; states++) {
		static const uint64_t expected_ms[] = {1250, 0, 500, 750};

		options.states = states;
		merge_init(&m, &options);
		made_add(&m, "p", "a", READY_AND_WAITING, "");
		OK(merge_finish(&m));
		ck_assert_uint_eq(total_ms(), expected_ms[states]);
		merge_fini(&m);
	}
}

/* A chunk with a waiting sample, of a profiler that did not tell ready from waiting. */
TEST(a_chunk_that_hides_ready_is_noticed)
{
	merge_init(&m, &options);
	made_add(&m, "p", "a", MADE_RUNS("1", "7", "0") MADE_END("2", "7", "0"), "");
	ck_assert(!m.hides_ready);
	made_add(&m, "p", "b", MADE_WAITS("2", "7", "0") MADE_END("3", "7", "0"), "");
	ck_assert(m.hides_ready);
}

TEST(a_chunk_without_lines_is_noticed)
{
	static const char chunk[] = "{\"version\":\"2\",\"profiler_id\":\"p\",\"chunk_id\":\"%s\","
				    "\"symbols\":\"%s\",\"profile\":{\"frames\":[],\"stacks\":[[]],"
				    "\"samples\":[]}}";
	char text[MADE_SIZE];

	merge_init(&m, &options);
	(void)snprintf(text, sizeof(text), chunk, "a", "lines");
	made_read(&m, text);
	ck_assert(!m.lacks_lines);
	(void)snprintf(text, sizeof(text), chunk, "b", "names");
	made_read(&m, text);
	ck_assert(m.lacks_lines);
}

static const struct {
	enum merge_filter_kind kind;
	const char *pattern;
	uint64_t ms;
} filters[] = {
	{MERGE_ANYTHING, "*", 1750},
	{MERGE_ANYTHING, "hash", 750},
	{MERGE_ANYTHING, "libc*", 750},
	{MERGE_ANYTHING, "8", 250},
	{MERGE_ANYTHING, "nothing", 0},
	{MERGE_FUNCTION, "work()", 1000}, /* the demangled name */
	{MERGE_FUNCTION, "_Z*", 0},
	{MERGE_FUNCTION, "libc.so.6", 0},
	{MERGE_FUNCTION, "[[]libc*", 0}, /* no brackets in patterns */
	{MERGE_FUNCTION, "?libc.so.6?", 750},
	{MERGE_MODULE, "/lib/*", 750},
	{MERGE_MODULE, "libc.so.6", 750},
	{MERGE_MODULE, "main", 0},
	{MERGE_THREAD, "main", 1500},
	{MERGE_THREAD, "7", 1500},
	{MERGE_THREAD, "hash", 0},
};

TESTS(a_filter_selects_the_bars_that_it_matches, array_size(filters))
{
	options.n_filters = 1;
	options.demangle = made_demangle;
	options.filters[0] = (struct merge_filter){filters[_i].kind, filters[_i].pattern};
	for (int i = 0; i < 2; i++) {
		options.is_ordered = i == 0;
		add_both();
		ck_assert_msg(total_ms() == filters[_i].ms, "%s: %d ms", filters[_i].pattern,
			      (int)total_ms());
		merge_fini(&m);
	}
}

TEST(a_bar_has_to_match_all_filters)
{
	options.n_filters = MERGE_FILTERS_MAX;
	for (size_t i = 0; i < MERGE_FILTERS_MAX; i++)
		options.filters[i] = (struct merge_filter){MERGE_FUNCTION, "main"};
	options.filters[MERGE_FILTERS_MAX - 1] = (struct merge_filter){MERGE_THREAD, "8"};
	add_both();
	ck_assert_uint_eq(total_ms(), 250);
}

TESTS(bars_are_shortened_to_the_range_of_time, 2)
{
	options.is_ordered = _i == 0;
	options.has_range = true;
	options.from_ns = 100 * NS_PER_MS;
	options.until_ns = 1250 * NS_PER_MS;
	add_both();
	ck_assert_uint_eq(total_ms(), 150 + 750 + 250 + 250);
	/* The first sample was before the range. */
	ck_assert_uint_eq(samples(), 3);
	merge_fini(&m);
	options.from_ns = 5 * NS_PER_SEC;
	options.until_ns = UINT64_MAX;
	add_both();
	ck_assert_uint_eq(m.n_bars, 0);
}

/* Chunks of one run have no overlaps. */
TESTS(time_in_several_chunks_counts_once, 2)
{
	options.is_ordered = _i == 0;
	merge_init(&m, &options);
	made_add(&m, "p", "a", MADE_RUNS("12", "7", "1") MADE_END("14", "7", "3"), "");
	made_add(&m, "p", "b", MADE_RUNS("10", "7", "0") MADE_END("20", "7", "3"), "");
	made_add(&m, "p", "c", MADE_RUNS("19", "7", "1") MADE_END("22", "7", "3"), "");
	/* Another thread. */
	made_add(&m, "p", "d", MADE_RUNS("12", "8", "1") MADE_END("14", "8", "3"), "");
	OK(merge_finish(&m));
	ck_assert_uint_eq(total_ms(), 14000);
	/* That of 19 is in b. */
	ck_assert_uint_eq(samples(), 3);
	ck_assert_uint_eq(m.overlap_ns, 3 * NS_PER_SEC);
	if (_i == 1)
		return;
	ck_assert_uint_eq(m.n_bars, 5);
	check_bar(0, 10000, 2000, PROFILE_RUNNING);
	check_bar(1, 12000, 2000, PROFILE_RUNNING);
	check_bar(2, 14000, 6000, PROFILE_RUNNING);
	check_bar(3, 20000, 2000, PROFILE_RUNNING);
}

TESTS(a_chunk_that_is_added_twice_counts_once, 2)
{
	uint64_t once_ms, once;

	options.is_ordered = _i == 0;
	add_both();
	once_ms = total_ms();
	once = samples();
	merge_fini(&m);
	merge_init(&m, &options);
	add_second();
	add_first();
	add_first();
	add_second();
	OK(merge_finish(&m));
	ck_assert_uint_eq(total_ms(), once_ms);
	ck_assert_uint_eq(samples(), once);
	ck_assert_uint_eq(m.overlap_ns, once_ms * NS_PER_MS);
}

/* In the format json they have one chunk_id. */
TESTS(parts_of_a_chunk_add_up, 2)
{
	options.is_ordered = _i == 0;
	merge_init(&m, &options);
	made_add(&m, "p", "a", MADE_RUNS("1", "7", "0") MADE_END("2", "7", "3"), "");
	made_add(&m, "p", "a", MADE_RUNS("1", "8", "0") MADE_END("2", "8", "3"), "");
	made_add(&m, "p", "a", MADE_RUNS("2", "7", "0") MADE_END("5", "7", "3"), "");
	OK(merge_finish(&m));
	ck_assert_uint_eq(total_ms(), 5000);
	ck_assert_uint_eq(m.overlap_ns, 0);
}

TEST(labels_tell_threads_apart)
{
	static const char *const wanted[] = {"main (1, p)", "main (1, q)", "main (2)", "worker",
					     "4"};

	merge_init(&m, &options);
	made_add(&m, "p", "a", MADE_END("1", "1", "0") "," MADE_END("1", "3", "0"),
		 "\"1\":{\"name\":\"main\"},\"3\":{\"name\":\"worker\"}");
	made_add(&m, "q", "a",
		 MADE_END("1", "1", "0") "," MADE_END("1", "2", "0") "," MADE_END("1", "4", "0"),
		 "\"1\":{\"name\":\"main\"},\"2\":{\"name\":\"main\"}");
	OK(merge_finish(&m));
	ck_assert_uint_eq(m.n_threads, array_size(wanted));
	for (size_t i = 0; i < array_size(wanted); i++) {
		size_t found = 0;

		for (size_t j = 0; j < m.n_threads; j++)
			found += strcmp(m.threads[j].label, wanted[i]) == 0;
		ck_assert_msg(found == 1, "%s", wanted[i]);
	}
}

#define LABELLED                                               \
	"\"7\":{\"name\":\"main\"},\"8\":{\"name\":\"main\"}," \
	"\"9\":{\"name\":\"worker\"}"

static const struct {
	const char *pattern;
	uint64_t ms;
} labels[] = {
	{"main (8)", 2000}, {"main*", 3000},
	{"worker", 4000},   {"worker (9)", 4000}, /* as pages show it */
	{"worker (8)", 0},
};

/* A label that the user copies from an output selects its thread. */
TESTS(threads_are_found_by_their_labels, array_size(labels))
{
	options.n_filters = 1;
	options.filters[0] = (struct merge_filter){MERGE_THREAD, labels[_i].pattern};
	merge_init(&m, &options);
	made_add(&m, "p", "a", MADE_RUNS("1", "7", "0") MADE_END("2", "7", "3"), LABELLED);
	made_add(&m, "p", "b", MADE_RUNS("1", "8", "0") MADE_END("3", "8", "3"), LABELLED);
	made_add(&m, "p", "c", MADE_RUNS("1", "9", "0") MADE_END("5", "9", "3"), LABELLED);
	OK(merge_finish(&m));
	ck_assert_uint_eq(total_ms(), labels[_i].ms);
}

/* In a chunk in which two threads have a name the profiler appends their ids. */
TEST(an_id_after_the_name_is_no_part_of_it)
{
	options.n_filters = 1;
	options.filters[0] = (struct merge_filter){MERGE_THREAD, "worker"};
	merge_init(&m, &options);
	made_add(&m, "p", "a",
		 MADE_RUNS("1", "7", "0") MADE_RUNS("1", "8", "0")
			 MADE_END("2", "7", "3") "," MADE_END("2", "8", "3"),
		 "\"7\":{\"name\":\"worker (7)\"},\"8\":{\"name\":\"worker (8)\"}");
	made_add(&m, "p", "b", MADE_RUNS("2", "8", "0") MADE_END("5", "8", "3"),
		 "\"8\":{\"name\":\"worker\"}");
	made_add(&m, "p", "c", MADE_RUNS("2", "9", "0") MADE_END("5", "9", "3"),
		 "\"9\":{\"name\":\" (9)\"}");
	OK(merge_finish(&m));
	ck_assert_uint_eq(total_ms(), 5000);
	ck_assert_str_eq(m.threads[0].label, "worker (7)");
	ck_assert_str_eq(m.threads[1].label, "worker (8)");
	ck_assert_str_eq(m.threads[2].label, " (9)");
}

TESTS(frames_differ_by_address_or_by_function, 2)
{
	static const char two[] = "{\"version\":\"2\",\"profiler_id\":\"%s\",\"chunk_id\":\"c\","
				  "\"platform\":\"%s\",\"profile\":{\"frames\":["
				  "{\"function\":\"_Zf\",\"instruction_addr\":\"0x10\"},"
				  "{\"function\":\"_Zf\",\"instruction_addr\":\"0x20\"}],"
				  "\"stacks\":[[0],[1]],\"samples\":[%s]}}";
	char text[MADE_SIZE];

	options.by_function = _i == 1;
	options.demangle = made_demangle;
	merge_init(&m, &options);
	for (int i = 0; i < 2; i++) {
		(void)snprintf(
			text, sizeof(text), two, i == 0 ? "p" : "q", i == 0 ? "rust" : "native",
			MADE_RUNS("1", "1", "0") MADE_RUNS("2", "1", "1") MADE_END("3", "1", "1"));
		made_read(&m, text);
	}
	ck_assert_uint_eq(m.n_frames, _i == 1 ? 2 : 4);
	ck_assert_str_eq(m.frames[0].name, "f()");
	ck_assert_str_eq(m.frames[0].function, "_Zf");
	/* Names of the platform native are not demangled. */
	ck_assert_str_eq(m.frames[m.n_frames - 1].name, "_Zf");
}

TEST(an_address_finds_the_image_of_its_frame)
{
	struct merge_frame f = {.addr = 0x1fff};

	add_both();
	/* Sorted by address, unlike in the chunk. */
	ck_assert_uint_eq(merge_find_image(&m, &f), 0);
	f.addr = 0x2000;
	ck_assert_uint_eq(merge_find_image(&m, &f), PROFILE_NONE);
	f.addr = 0x7000;
	ck_assert_uint_eq(merge_find_image(&m, &f), 1);
	f.addr = 0xfff;
	ck_assert_uint_eq(merge_find_image(&m, &f), PROFILE_NONE);
	f.addr = 0;
	ck_assert_uint_eq(merge_find_image(&m, &f), PROFILE_NONE);
}

TEST(chunks_with_and_without_states_are_noticed)
{
	merge_init(&m, &options);
	made_add(&m, "p", "c", MADE_END("1", "7", "0") "," MADE_END("2", "7", "0"), "");
	ck_assert(m.lacks_states && !m.has_states);
	add_first();
	ck_assert(m.lacks_states && m.has_states);
}
