#include "lib/aggregate/programs.h"

#include <stdlib.h>

#include "tests/unit/suite.h"

#define S NS_PER_SEC

static struct programs programs;

static void set_up(void)
{
	programs_init(&programs, 0);
}

static void tear_down(void)
{
	programs_fini(&programs);
}

static void add(const char *name, bool is_first, uint64_t running, uint64_t ready, uint64_t waiting)
{
	const uint64_t ns[PROFILE_STATES] = {running, ready, waiting};

	bool is_counted = !is_first;

	OK(programs_add(&programs, name, ns, &is_counted));
	ck_assert(is_counted);
}

static char *table(size_t max_rows, bool with_ready)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	OK(programs_write(&programs, max_rows, with_ready, f));
	OK(fclose(f));
	return text;
}

static void check_rows(size_t max_rows, bool with_ready, const char *expected)
{
	char *text = table(max_rows, with_ready);
	const char *rows = strstr(text, "PROGRAM\n");

	ck_assert_ptr_nonnull(rows);
	ck_assert_str_eq(rows, expected);
	free(text);
}

FIXTURE(set_up, tear_down)

/* The hottest program first; the times of a process are added when its chunks are closed. */
TEST(a_row_for_each_program)
{
	add("make", true, 0, 0, 6 * S);
	add("cc1", true, 1 * S, 0, 0);
	add("cc1", false, 1 * S, 0, 0);
	add("cc1", true, 4 * S, 2 * S, 0);
	add("as", true, 2 * S, 0, 1 * S);
	check_rows(3, false,
		   "PROGRAM\n"
		   "     6.00 s   75.0%          -          2  cc1\n"
		   "     2.00 s   25.0%     1.00 s          1  as\n"
		   "          -             6.00 s          1  make\n\n");
	check_rows(1, true,
		   "PROGRAM\n"
		   "     6.00 s   75.0%     2.00 s          -          2  cc1\n"
		   "     2.00 s   25.0%          -     7.00 s          2  (other programs)\n\n");
}

TEST(one_process_has_no_table)
{
	char *text;

	add("a", true, S, 0, 0);
	add("a", false, S, 0, 0);
	text = table(10, false);
	ck_assert_str_eq(text, "");
	free(text);
}

/* A process that has had no time yet is counted when it has. */
TEST(a_process_without_time_is_not_counted)
{
	static const uint64_t nothing[PROFILE_STATES];
	bool is_counted = false;

	OK(programs_add(&programs, "a", nothing, &is_counted));
	ck_assert(!is_counted);
	ck_assert_uint_eq(programs.n, 0);
}

/* A process that executes another program is in both rows. */
TEST(two_programs_of_one_process)
{
	add("sh", true, S, 0, 0);
	add("a", true, 3 * S, 0, 0);
	check_rows(10, false,
		   "PROGRAM\n"
		   "     3.00 s   75.0%          -          1  a\n"
		   "     1.00 s   25.0%          -          1  sh\n\n");
}

/* The name is a file's, which the target's user has chosen. */
TEST(names_are_escaped)
{
	char *text;

	add("a\x1b[31m", true, S, 0, 0);
	add("b", true, S, 0, 0);
	text = table(10, false);
	HAS(text, "  a\\x1b[31m\n");
	free(text);
}

/* Further programs share a row; those that have one keep it. */
TEST(programs_above_the_limit_share_a_row)
{
	char name[16];

	for (size_t i = 0; i < PROGRAMS_MAX + 10; i++) {
		(void)snprintf(name, sizeof(name), "p%zu", i);
		add(name, true, S, 0, 0);
	}
	add("p0", true, S, 0, 0);
	add("p70", false, S, 0, 0);
	check_rows(1, false,
		   "PROGRAM\n"
		   "     2.00 s    2.6%          -          2  p0\n"
		   "    74.00 s   97.4%          -         73  (other programs)\n\n");
}
