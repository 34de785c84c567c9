#include "lib/aggregate/functions.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/aggregate/letters.h"
#include "tests/unit/golden.h"
#include "tests/unit/suite.h"

#define S NS_PER_SEC

static bool full_names;

static struct stacks stacks;
static struct functions functions;
static struct profile_frame frames[64];

static void set_up(void)
{
	stacks_init(&stacks, 0);
	functions_init(&functions, 0);
	memset(frames, 0, sizeof(frames));
	full_names = false;
}

static void tear_down(void)
{
	stacks_fini(&stacks);
	functions_fini(&functions);
}

/* Names the frames: a to o are functions of /opt/app, p to z are functions of /lib/libc.so.6. */
static void name_frames(void)
{
	static const char names[] = "a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0k\0l\0m\0n\0"
				    "o\0p\0q\0r\0s\0t\0u\0v\0w\0x\0y\0z";

	ck_assert_uint_le(stacks.n_frames, array_size(frames));
	for (size_t i = 0; i < stacks.n_frames; i++) {
		size_t letter = (stacks.frames[i].addr - 0x10000) / 0x100;

		frames[i].function = &names[2 * letter];
		frames[i].package = letter < 'p' - 'a' ? "/opt/app" : "/lib/libc.so.6";
	}
}

static void spend(const char *word, uint64_t ns, enum profile_state state)
{
	const struct unwind_stack *stack = letters_stack(word);
	uint32_t node;

	OK(stacks_add(&stacks, PROFILE_NONE, stack->frames, stack->n, &node));
	stacks_charge(&stacks, node, ns, state);
}

static void count(void)
{
	name_frames();
	OK(functions_add(&functions, &stacks, frames));
}

static char *table(size_t max_rows)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	OK(functions_write(&functions, max_rows, full_names, f));
	OK(fclose(f));
	return text;
}

static void check_table(size_t max_rows, const char *name)
{
	char *text = table(max_rows);
	char path[64];

	(void)snprintf(path, sizeof(path), "tests/golden/functions_%s.txt", name);
	golden_check(text, path);
	free(text);
}

FIXTURE(set_up, tear_down)

/* The innermost inlined function is the leaf; each function has a total, once for each stack. */
TEST(inlined_functions_have_rows)
{
	static const struct profile_frame inlined[] = {
		{.function = "inner", .package = "/opt/app"},
		{.function = "between", .package = "/opt/app"},
	};
	struct profile_lines lines[64] = {{0}};
	char *text;

	spend("ba", 3 * S, PROFILE_RUNNING);
	spend("a", 1 * S, PROFILE_WAITING);
	name_frames();
	/* Both functions were inlined into the leaf b, and one into a. */
	for (size_t i = 0; i < stacks.n_frames; i++)
		lines[i] = frames[i].function[0] == 'b' ? (struct profile_lines){0, 2, NULL, 0}
							: (struct profile_lines){1, 1, NULL, 0};
	OK(functions_add_inlined(&functions, &stacks, frames, lines, inlined, 2));
	text = table(8);
	HAS(text, "     3.00 s  100.0%     3.00 s  100.0%          -  inner  ");
	HAS(text, "          -             3.00 s  100.0%     1.00 s  between  ");
	HAS(text, "          -             3.00 s  100.0%          -  a  ");
	HAS(text, "          -             3.00 s  100.0%          -  b  ");
	free(text);
}

TEST(shares)
{
	spend("am", 7 * S, PROFILE_RUNNING);
	spend("bm", 3 * S, PROFILE_RUNNING);
	spend("pm", 20 * S, PROFILE_WAITING);
	count();
	check_table(10, "shares");
}

/* A recursive function counts once in the total. */
TEST(recursion)
{
	spend("aabam", 4 * S, PROFILE_RUNNING);
	spend("ba", S, PROFILE_RUNNING);
	count();
	check_table(10, "recursion");
}

TEST(sums_over_chunks)
{
	spend("am", S, PROFILE_RUNNING);
	count();
	/* Times that were added once are not added again. */
	count();
	stacks_fini(&stacks);
	spend("xam", 2 * S, PROFILE_RUNNING);
	spend("am", S, PROFILE_RUNNING);
	count();
	check_table(10, "sums_over_chunks");
}

TEST(other_functions_in_one_row)
{
	spend("am", 5 * S, PROFILE_RUNNING);
	spend("bm", 3 * S, PROFILE_RUNNING);
	spend("cm", 2 * S, PROFILE_RUNNING);
	spend("pm", 2 * S, PROFILE_WAITING);
	count();
	check_table(1, "others_in_one_row");
	check_table(0, "others_only");
}

/* With a column READY, and a sum of it for the other functions. */
TEST(ready_functions)
{
	spend("am", 5 * S, PROFILE_RUNNING);
	spend("am", 9 * S, PROFILE_READY);
	spend("bm", 5 * S, PROFILE_RUNNING);
	spend("cm", 2 * S, PROFILE_READY);
	spend("pm", 20 * S, PROFILE_WAITING);
	spend("qm", 1 * S, PROFILE_READY);
	count();
	check_table(4, "ready");
}

/* A ready time that would be shown as 0.00 s has no column. */
TEST(a_short_ready_time_has_no_column)
{
	char *text;

	spend("am", 5 * S, PROFILE_RUNNING);
	spend("am", 4 * NS_PER_MS, PROFILE_READY);
	count();
	text = table(10);
	LACKS(text, "READY");
	LACKS(text, "ready");
	free(text);
	spend("am", 1 * NS_PER_MS, PROFILE_READY);
	count();
	text = table(10);
	HAS(text, "ready 0.01 s");
	HAS(text, "READY");
	free(text);
}

/* The times of a file whose profiler did not tell ready from waiting. */
TEST(waiting_times_that_may_be_ready_times)
{
	char *text;

	spend("am", 5 * S, PROFILE_WAITING);
	count();
	text = table(10);
	HAS(text, "WAITING: time in the function, blocked.\n");
	free(text);
	functions.hides_ready = true;
	text = table(10);
	HAS(text, "blocked or without a processor (waiting or ready).\n");
	free(text);
}

/*
 * One of four rows shows the function with the most waiting time, although three others have more
 * CPU time.
 */
TEST(longest_wait_has_a_row)
{
	spend("am", 5 * S, PROFILE_RUNNING);
	spend("bm", 4 * S, PROFILE_RUNNING);
	spend("cm", 3 * S, PROFILE_RUNNING);
	spend("dm", 2 * S, PROFILE_RUNNING);
	spend("pm", 2 * S, PROFILE_WAITING);
	spend("qm", 9 * S, PROFILE_WAITING);
	count();
	check_table(4, "longest_wait");
}

/* A function that only calls waiting ones has no time to show. */
TEST(callers_of_waiting_functions_are_left_out)
{
	spend("am", 5 * S, PROFILE_RUNNING);
	spend("pz", 2 * S, PROFILE_WAITING);
	count();
	check_table(10, "callers_of_waits");
}

TEST(empty_table)
{
	count();
	check_table(10, "empty");
}

/* All code of a file without symbols counts as one function. */
TEST(files_without_symbols)
{
	spend("abpq", 3 * S, PROFILE_RUNNING);
	spend("bc", S, PROFILE_RUNNING);
	name_frames();
	for (size_t i = 0; i < stacks.n_frames; i++) {
		frames[i].function = NULL;
		if (stacks.frames[i].addr == letters_addr('c') + 8)
			frames[i].package = NULL;
	}
	OK(functions_add(&functions, &stacks, frames));
	check_table(10, "without_symbols");
}

/* Functions with the same name in two files are two functions. */
TEST(equal_names_in_two_files)
{
	spend("ap", S, PROFILE_RUNNING);
	spend("pa", S, PROFILE_RUNNING);
	name_frames();
	for (size_t i = 0; i < stacks.n_frames; i++)
		frames[i].function = "init";
	OK(functions_add(&functions, &stacks, frames));
	check_table(10, "equal_names");
}

/* The table has no control byte for the terminal. */
TEST(names_are_escaped_and_cut_off)
{
	static char endless[1001];
	char *text;

	spend("a", S, PROFILE_RUNNING);
	name_frames();
	frames[0].function = "e\x1b[31m\r\n\t\x7f\xc2\x9bz\xc3\xa4";
	frames[0].package = "/tmp/\x1b]0;x\x07.so";
	OK(functions_add(&functions, &stacks, frames));
	text = table(10);
	HAS(text, "  e\\x1b[31m\\x0d\\x0a\\x09\\x7f\\x9bz\xc3\xa4"
		  "   \\x1b]0;x\\x07.so\n");
	free(text);

	memset(endless, 'x', sizeof(endless) - 1);
	spend("a", S, PROFILE_RUNNING);
	frames[0].function = endless;
	OK(functions_add(&functions, &stacks, frames));
	text = table(10);
	HAS(text, "xxx...  \\x1b]");
	ck_assert_uint_lt(strlen(text), 1000);
	free(text);
}

/* With more functions than the limit, those with the least time are summed up in one row. */
TEST(functions_above_the_limit_are_summed_up)
{
	static char names[3 * FUNCTIONS_MAX][8];
	uint64_t total = 0, ready = 0;
	char *text;

	functions.hides_ready = true;
	for (uint64_t i = 0; i < array_size(names); i++) {
		struct unwind_frame frame = {0x1000, 1, 0};
		uint32_t node;

		(void)snprintf(names[i], sizeof(names[i]), "f%d", (int)i);
		frames[0] = (struct profile_frame){.function = names[i]};
		OK(stacks_add(&stacks, PROFILE_NONE, &frame, 1, &node));
		stacks_charge(&stacks, node, (i + 1) * 1000, PROFILE_RUNNING);
		stacks_charge(&stacks, node, 1000, PROFILE_READY);
		total += (i + 1) * 1000;
		ready += 1000;
		OK(functions_add(&functions, &stacks, frames));
		ck_assert_uint_le(functions.n, FUNCTIONS_MAX + 1);
	}
	ck_assert_uint_gt(functions.n_others, 0);
	ck_assert_uint_eq(functions.n_others + functions.n, array_size(names));
	for (size_t i = 0; i < functions.n; i++) {
		total -= functions.rows[i].self_ns;
		ready -= functions.rows[i].ready_ns;
	}
	ck_assert_uint_eq(total, functions.others_self_ns);
	ck_assert_uint_eq(ready, functions.others_ready_ns);
	ck_assert(functions.hides_ready);
	/* The function with the most time is still there. */
	text = table(1);
	HAS(text, "  f12287\n");
	free(text);
}

TEST(write_error)
{
	FILE *f = fopen("/dev/full", "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(functions_write(&functions, 10, false, f), -EIO);
	(void)fclose(f);
}

/* Gives the frames of a letter another function and file. */
static void rename_frames(const char *letter, const char *function, const char *package)
{
	for (size_t i = 0; i < stacks.n_frames; i++) {
		if (strcmp(frames[i].function, letter) != 0)
			continue;
		frames[i].function = function;
		frames[i].package = package;
	}
}

/* Counts a second of the functions a and b with these names. */
static void count_names(const char *a, const char *b)
{
	functions_fini(&functions);
	stacks_fini(&stacks);
	spend("a", S, PROFILE_RUNNING);
	spend("ba", S, PROFILE_RUNNING);
	name_frames();
	rename_frames("a", a, "/opt/app");
	rename_frames("b", b, "/opt/app");
	OK(functions_add(&functions, &stacks, frames));
}

TEST(names_are_short_or_full)
{
	char *text;

	count_names("demo::Pool<long>::take(unsigned int)",
		    "demo::Pool<double>::take(unsigned int)");
	text = table(10);
	HAS(text, "  demo::Pool<long>::take(...)       app\n");
	HAS(text, "  demo::Pool<double>::take(...)     app\n");
	free(text);
	full_names = true;
	text = table(10);
	HAS(text, "  demo::Pool<long>::take(unsigned int)  app\n");
	free(text);
}

/* The constructors C1 and C2, and the instances of a Rust function, have one demangled name. */
TEST(symbols_with_one_name_are_one_function)
{
	char *text;

	count_names("_ZPool::Pool", "_RPool::Pool");
	text = table(10);
	HAS(text, "     2.00 s  100.0%     2.00 s  100.0%          -  Pool::Pool()  ");
	LACKS(text, "1.00 s");
	free(text);
	/* A second time without demangling. */
	spend("ba", S, PROFILE_RUNNING);
	OK(functions_add(&functions, &stacks, frames));
	ck_assert_uint_eq(functions.n, 1);
	ck_assert_uint_eq(functions.n_symbols, 2);
	ck_assert_uint_eq(functions.rows[0].self_ns, 3 * S);
	ck_assert_uint_eq(functions.rows[0].total_ns, 3 * S);
}

/* Names are cut off, but not if they would look alike. */
TEST(names_that_differ_at_their_end_are_not_cut_off)
{
	char a[400], b[400];
	char *text;

	memset(a, 'x', sizeof(a));
	memset(b, 'x', sizeof(b));
	(void)snprintf(a + 300, 100, "_a");
	(void)snprintf(b + 300, 100, "_b");
	count_names(a, b);
	text = table(10);
	HAS(text, "xx_a  app\n");
	HAS(text, "xx_b  app\n");
	free(text);
	b[FUNCTIONS_NAME_COLUMNS - 1] = 'y';
	count_names(a, b);
	text = table(10);
	HAS(text, "xx...  app\n");
	HAS(text, "xy...  app\n");
	free(text);
	full_names = true;
	text = table(10);
	HAS(text, "xx_a  app\n");
	free(text);
}

static void check_hint(const char *hint)
{
	char *text;

	OK(functions_add(&functions, &stacks, frames));
	text = table(20);
	ck_assert_msg((strstr(text, hint) != NULL) == (hint[0] != '\n'), "%s", text);
	free(text);
}

/* A hint that begins with a line break must not be there. */
static const struct {
	const char *function, *package;
	uint64_t of_it, others;
	const char *hint;
} hints[] = {
	{"_PyEval_EvalFrameDefault", "/usr/bin/python3", 6 * S, 4 * S,
	 "60 % of the CPU time is in the interpreter of Python, "},
	{"execute_ex", "/usr/bin/php", S, S, "50 % of the CPU time is in the interpreter of PHP, "},
	{"_PyEval_EvalFrameDefault", "/usr/bin/python3", 4 * S, 6 * S, "\n40 %"},
	{NULL, NULL, 6 * S, 4 * S,
	 "60 % of the CPU time is in code that was generated at run time."},
	{NULL, "/opt/stripped", 6 * S, 4 * S, "\n60 %"},
};

/* The interpreter counts with the functions that it calls. */
TESTS(the_reason_why_there_are_no_names, array_size(hints))
{
	spend(hints[_i].function != NULL ? "bam" : "am", hints[_i].of_it, PROFILE_RUNNING);
	spend("cm", hints[_i].others, PROFILE_RUNNING);
	name_frames();
	rename_frames("a", hints[_i].function, hints[_i].package);
	check_hint(hints[_i].hint);
}
