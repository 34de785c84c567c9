#include "daemon/ctl/top/top_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/import/reader.h"
#include "tests/unit/export/made_chunks.h"
#include "tests/unit/suite.h"

static const struct top_order by_self = {TOP_SELF, false};

static struct top_model m;
static struct top_rows rows;

static void set_up(void)
{
	top_model_init(&m, made_demangle, 0);
}

static void tear_down(void)
{
	top_rows_fini(&rows);
	top_model_fini(&m);
}

static void add(const char *text)
{
	struct import_fault fault = {""};
	struct import_chunk chunk;
	struct import_reader t;

	import_reader_init(&t, text, strlen(text));
	ck_assert_msg(import_reader_next(&t, &chunk, &fault) == 1, "%s: %.500s", fault.text, text);
	OK(top_model_add(&m, &chunk));
	import_chunk_fini(&chunk);
}

/*
 * The stacks are 0: main;work, 1: main;work;hash, 2: main;poll, 3:
 * main;work;work;hash, 4: hash;work;poll.
 */
static void add_samples(const char *chunk_id, const char *samples)
{
	char text[MADE_SIZE];

	(void)snprintf(text, sizeof(text),
		       "{\"version\":\"2\",\"profiler_id\":\"p\",\"chunk_id\":\"%s\","
		       "\"platform\":\"rust\",\"profile\":{\"frames\":["
		       "{\"function\":\"main\",\"package\":\"/opt/app\"},"
		       "{\"function\":\"_Zwork\",\"package\":\"/opt/app\"},"
		       "{\"function\":\"hash\",\"package\":\"/opt/app\"},"
		       "{\"instruction_addr\":\"0x7010\",\"package\":\"/lib/"
		       "libc.so.6\"}],"
		       "\"stacks\":[[1,0],[2,1,0],[3,0],[2,1,1,0],[3,1,2]],"
		       "\"samples\":[%s],"
		       "\"thread_metadata\":{\"7\":{\"name\":\"main\"}}}}",
		       chunk_id, samples);
	add(text);
}

/*
 * Adds a chunk of one second. Thread 7 runs in hash for 0.4 s and in work for 0.1 s, and waits
 * for 0.5 s. Thread 8 runs in hash, called by work, which work has called.
 */
static void add_first(void)
{
	add_samples("a",
		    MADE_RUNS("100.0", "7", "1") MADE_RUNS("100.0", "8", "3")
			    MADE_RUNS("100.4", "7", "0") MADE_WAITS("100.5", "7", "2")
				    MADE_END("101.0", "8", "3") "," MADE_END("101.0", "7", "2"));
}

/* Adds a chunk of one second in which thread 7 runs in work. */
static void add_second(void)
{
	add_samples("b", MADE_RUNS("101.0", "7", "0") MADE_END("102.0", "7", "0"));
}

static void check_time(const struct top_time *t, unsigned int self_ms, unsigned int total_ms,
		       unsigned int waiting_ms)
{
	ck_assert_uint_eq(t->self_ns / NS_PER_MS, self_ms);
	ck_assert_uint_eq(t->total_ns / NS_PER_MS, total_ms);
	ck_assert_uint_eq(t->waiting_ns / NS_PER_MS, waiting_ms);
}

static const struct top_row *row_at(size_t i, const char *name)
{
	ck_assert_uint_lt(i, rows.n);
	ck_assert_str_eq(rows.v[i].name, name);
	return &rows.v[i];
}

static const struct top_row *find(const char *name)
{
	for (size_t i = 0; i < rows.n; i++)
		if (strcmp(rows.v[i].name, name) == 0)
			return &rows.v[i];
	ck_abort_msg("no row %s", name);
}

static void list_functions(struct top_order order)
{
	OK(top_model_rows(&m, &m.functions, order, &rows));
}

static void list_threads(struct top_order order)
{
	OK(top_model_rows(&m, &m.threads, order, &rows));
}

static void list_chosen(struct top_order order)
{
	OK(top_model_rows(&m, &m.chosen, order, &rows));
}

/* Chooses all threads, or the one with this name, and all functions, or the callers of one. */
static void choose(const char *thread, const char *function)
{
	uint64_t thread_key = TOP_NO_KEY, function_key = TOP_NO_KEY;

	if (thread != NULL) {
		list_threads(by_self);
		thread_key = find(thread)->key;
	}
	if (function != NULL) {
		list_functions(by_self);
		function_key = find(function)->key;
	}
	top_model_choose(&m, thread_key, function_key);
}

FIXTURE(set_up, tear_down)

TEST(functions_of_the_last_chunk_and_since_the_start)
{
	add_first();
	ck_assert_uint_eq(m.now_ns, NS_PER_SEC);
	list_functions(by_self);
	ck_assert_uint_eq(rows.n, 4);
	check_time(&row_at(0, "hash")->now, 1400, 1400, 0);
	ck_assert_str_eq(rows.v[0].detail, "/opt/app");
	/* Recursion counts once. */
	check_time(&row_at(1, "work()")->now, 100, 1500, 0);
	check_time(&find("main")->now, 0, 1500, 0);
	check_time(&find("[libc.so.6]")->now, 0, 0, 500);

	add_second();
	ck_assert_uint_eq(m.now_ns, NS_PER_SEC);
	ck_assert_uint_eq(m.all_ns, 2 * NS_PER_SEC);
	list_functions(by_self);
	check_time(&row_at(0, "work()")->now, 1000, 1000, 0);
	check_time(&rows.v[0].all, 1100, 2500, 0);
	check_time(&row_at(1, "hash")->now, 0, 0, 0);
	check_time(&rows.v[1].all, 1400, 1400, 0);
}

TEST(rows_are_sorted_by_a_column)
{
	add_first();
	add_second();
	list_functions((struct top_order){TOP_SELF, true});
	row_at(0, "hash");
	list_functions((struct top_order){TOP_TOTAL, true});
	/* Both have the same total time; work() has more time in all columns together. */
	row_at(0, "work()");
	row_at(1, "main");
	list_functions((struct top_order){TOP_WAITING, false});
	/* No function waits in the last chunk: the time since the start decides. */
	row_at(0, "[libc.so.6]");
}

TEST(times_of_threads)
{
	add_first();
	list_threads(by_self);
	ck_assert_uint_eq(rows.n, 2);
	check_time(&row_at(0, "")->now, 1000, 1000, 0);
	ck_assert_str_eq(rows.v[0].detail, "8");
	check_time(&row_at(1, "main")->now, 500, 500, 500);
	ck_assert_str_eq(rows.v[1].detail, "7");
	add_second();
	list_threads(by_self);
	check_time(&row_at(0, "main")->now, 1000, 1000, 0);
	check_time(&rows.v[0].all, 1500, 1500, 500);
	check_time(&m.threads.whole.all, 2500, 2500, 500);
}

TEST(name_of_a_thread_is_the_last_one)
{
	add_first();
	add("{\"version\":\"2\",\"profiler_id\":\"p\",\"chunk_id\":\"b\","
	    "\"platform\":\"native\",\"profile\":{\"frames\":[{\"function\":\"f\"}],"
	    "\"stacks\":[[0]],\"samples\":[" MADE_RUNS("101.0", "7", "0") MADE_END(
		    "102.0", "7", "0") "],\"thread_metadata\":{\"7\":{\"name\":\"pool\"}}}}");
	list_threads(by_self);
	ck_assert_uint_eq(rows.n, 2);
	check_time(&row_at(0, "pool")->all, 1500, 1500, 500);
	ck_assert_str_eq(rows.v[0].detail, "7");
}

/* A choice has the last chunk and the chunks after the choice. */
TEST(functions_of_a_chosen_thread)
{
	add_second();
	add_first();
	choose("main", NULL);
	list_chosen(by_self);
	check_time(&row_at(0, "hash")->now, 400, 400, 0);
	check_time(&find("work()")->all, 100, 500, 0);
	add_second();
	add_samples("c", MADE_RUNS("102.0", "8", "0") MADE_END("103.0", "8", "0"));
	list_chosen(by_self);
	check_time(&find("work()")->now, 0, 0, 0);
	check_time(&find("work()")->all, 1100, 1500, 0);
	/* An earlier choice is forgotten. */
	choose("", NULL);
	list_chosen(by_self);
	check_time(&row_at(0, "work()")->all, 1000, 1000, 0);
}

TEST(times_of_callers)
{
	add_first();
	choose("main", "hash");
	list_chosen(by_self);
	ck_assert_uint_eq(rows.n, 1);
	check_time(&row_at(0, "work()")->now, 400, 400, 0);

	choose(NULL, "work()");
	list_chosen((struct top_order){TOP_TOTAL, false});
	ck_assert_uint_eq(rows.n, 2);
	check_time(&row_at(0, "main")->now, 100, 1500, 0);
	check_time(&row_at(1, "work()")->now, 0, 1000, 0);

	/* Waiting time of callers includes that of the functions below work(). */
	add_samples("c", MADE_WAITS("102.0", "7", "4") MADE_END("102.2", "7", "4"));
	list_chosen((struct top_order){TOP_WAITING, true});
	check_time(&row_at(0, "hash")->all, 0, 0, 200);
	check_time(&row_at(1, "main")->all, 100, 1500, 0);

	choose(NULL, "hash");
	list_chosen(by_self);
	ck_assert_uint_eq(row_at(0, "(root)")->key, TOP_NO_KEY);
	check_time(&rows.v[0].all, 0, 0, 200);
}

/* Thread 7 is ready in hash for 0.4 s, and runs in work for 0.2 s; then it waits. */
TEST(ready_times)
{
	add_samples("a", MADE_READY("100.0", "7", "1") MADE_RUNS("100.4", "7", "0")
				 MADE_WAITS("100.6", "7", "2") MADE_END("101.0", "7", "2"));
	list_functions((struct top_order){TOP_READY, false});
	check_time(&row_at(0, "hash")->now, 0, 0, 0);
	ck_assert_uint_eq(rows.v[0].now.ready_ns / NS_PER_MS, 400);
	check_time(&find("work()")->now, 200, 200, 0);
	ck_assert_uint_eq(find("work()")->now.ready_ns / NS_PER_MS, 0);
	check_time(&m.threads.whole.now, 200, 200, 400);
	ck_assert_uint_eq(m.threads.whole.all.ready_ns / NS_PER_MS, 400);
	/* The payload does not say that waiting is not ready. */
	ck_assert(m.hides_ready);

	choose(NULL, "main");
	list_chosen((struct top_order){TOP_READY, true});
	ck_assert_uint_eq(row_at(0, "(root)")->all.ready_ns / NS_PER_MS, 400);
	/* Of what no row has. */
	add_samples("b", MADE_READY("101.0", "8", "1") MADE_END("101.5", "8", "1"));
	list_threads((struct top_order){TOP_READY, false});
	ck_assert_str_eq(row_at(0, "")->detail, "8");
	ck_assert_uint_eq(rows.v[0].now.ready_ns / NS_PER_MS, 500);
	ck_assert_uint_eq(rows.n, 2);
}

/* Returns a chunk of n threads, each with one function: "f" and a number from first on. */
static char *many(unsigned int first, unsigned int n)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(out);
	(void)fprintf(out,
		      "{\"version\":\"2\",\"profiler_id\":\"p\",\"chunk_id\":"
		      "\"%u\",\"platform\":\"native\",\"profile\":{\"frames\":[",
		      first);
	for (unsigned int i = 0; i < n; i++)
		(void)fprintf(out, "%s{\"function\":\"f%u\"}", i == 0 ? "" : ",", first + i);
	(void)fprintf(out, "],\"stacks\":[");
	for (unsigned int i = 0; i < n; i++)
		(void)fprintf(out, "%s[%u]", i == 0 ? "" : ",", i);
	(void)fprintf(out, "],\"samples\":[");
	for (unsigned int i = 0; i < 2 * n; i++)
		(void)fprintf(out,
			      "%s{\"timestamp\":%u.5,\"thread_id\":\"%u\","
			      "\"stack_id\":%u}",
			      i == 0 ? "" : ",", 100 + 3 * (i / n), first + i % n, i % n);
	(void)fprintf(out, "],\"thread_metadata\":{}}}");
	OK(fclose(out));
	return text;
}

TEST(least_times_are_dropped)
{
	const unsigned int n = TOP_ROWS_MAX / 4 + 1;
	uint64_t self_ns = 0;
	char name[16];

	add_first();
	/* The chosen function has little time, and its callers are counted all the same. */
	choose(NULL, "work()");
	list_chosen(by_self);
	for (unsigned int i = 0; i < 9; i++) {
		char *text = many(1000 + i * n, n);

		add(text);
		free(text);
		ck_assert_uint_le(m.threads.n, TOP_ROWS_MAX + n);
		/* With the row for stacks without a caller. */
		ck_assert_uint_le(m.functions.n, TOP_ROWS_MAX + n + 1);
		ck_assert_uint_le(m.chosen.n, TOP_ROWS_MAX + n + 1);
	}
	ck_assert_uint_eq(m.functions.by_key.used, m.functions.n);
	list_functions((struct top_order){TOP_SELF, true});
	check_time(&row_at(rows.n - 1, "(others)")->now, 0, 0, 0);
	ck_assert_uint_eq(rows.v[rows.n - 1].all.total_ns, 0);
	(void)snprintf(name, sizeof(name), "f%u", 1000 + 9 * n - 1);
	check_time(&find(name)->now, 3000, 3000, 0);
	for (size_t i = 0; i < rows.n; i++)
		self_ns += rows.v[i].all.self_ns;
	ck_assert_uint_eq(self_ns / NS_PER_MS, 1500 + 9 * n * 3000);
	list_threads(by_self);
	ck_assert_uint_eq(row_at(rows.n - 1, "(others)")->all.total_ns,
			  rows.v[rows.n - 1].all.self_ns);
	add_second();
	list_chosen(by_self);
	check_time(&row_at(0, "main")->all, 1100, 2500, 0);
}

TEST(model_without_samples)
{
	list_functions(by_self);
	ck_assert_uint_eq(rows.n, 0);
	list_threads(by_self);
	ck_assert_uint_eq(rows.n, 0);
	list_chosen(by_self);
	ck_assert_uint_eq(rows.n, 0);
	add_samples("a", "");
	ck_assert_uint_eq(m.now_ns, 0);
	list_functions(by_self);
	ck_assert_uint_eq(rows.n, 0);
}
