#include "daemon/common/log_limit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

#define NOW   (1000 * NS_PER_SEC)
#define LATER (NOW + LOG_LIMIT_WINDOW_NS)

static const char one[] = "process %d", other[] = "file %d";
static struct log_limit l;
static struct log_limit_suppressed suppressed;

static void set_up(void)
{
	memset(&l, 0, sizeof(l));
}

/* Passes n lines of a kind; returns the number of lines that are to be logged. */
static unsigned int log_lines(const char *format, unsigned int n, uint64_t now)
{
	unsigned int said = 0;
	char text[96];

	for (unsigned int i = 1; i <= n; i++) {
		(void)snprintf(text, sizeof(text), "%s, %u", format, i);
		said += log_limit_take(&l, "4", format, LOG_LIMIT_LINES, text, now);
	}
	return said;
}

FIXTURE(set_up, NULL)

TEST(lines_up_to_the_limit_are_logged)
{
	ck_assert_uint_eq(log_lines(one, LOG_LIMIT_LINES, NOW), LOG_LIMIT_LINES);
	ck_assert(!log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(log_lines(one, LOG_LIMIT_LINES, LATER), LOG_LIMIT_LINES);
}

TEST(lines_above_the_limit_are_counted)
{
	ck_assert_uint_eq(log_lines(one, LOG_LIMIT_LINES + 7, NOW), LOG_LIMIT_LINES);
	ck_assert(!log_limit_next_suppressed(&l, LATER - 1, &suppressed));
	ck_assert(log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(suppressed.lines, 7);
	ck_assert_str_eq(suppressed.level, "4");
	ck_assert_str_eq(suppressed.last, "process %d, 17");
	ck_assert(!log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(log_lines(one, 1, LATER), 1);
}

static void pass(const char *level, const char *text)
{
	(void)log_limit_take(&l, level, one, 1, text, NOW);
}

/* The lines of a child are of one kind, and of several levels. */
TEST(suppressed_lines_have_the_gravest_of_their_levels)
{
	pass("6", "logged");
	pass("4", "a warning");
	pass("3", "an error");
	pass("3", "another error");
	pass("4", "another warning");
	ck_assert(log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(suppressed.lines, 4);
	ck_assert_str_eq(suppressed.level, "3");
	ck_assert_str_eq(suppressed.last, "another error");
	/* The level of the lines that are logged does not matter. */
	pass("3", "logged");
	pass("4", "a warning");
	ck_assert(log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_str_eq(suppressed.level, "4");
}

/* The window is over, and the suppressed lines were not reported yet. */
TEST(lines_are_counted_until_they_are_reported)
{
	log_lines(one, LOG_LIMIT_LINES + 7, NOW);
	ck_assert_uint_eq(log_lines(one, 1, LATER), 0);
	ck_assert(log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(suppressed.lines, 8);
}

TEST(each_kind_has_its_own_limit)
{
	log_lines(one, LOG_LIMIT_LINES + 1, NOW);
	ck_assert_uint_eq(log_lines(other, LOG_LIMIT_LINES + 2, NOW), LOG_LIMIT_LINES);
	ck_assert(log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(suppressed.lines, 1);
	ck_assert(log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(suppressed.lines, 2);
}

/* A slot becomes free when its window is over and it has no suppressed lines. */
TEST(a_kind_without_a_slot_is_not_limited)
{
	static char kinds[LOG_LIMIT_KINDS + 1];

	for (size_t i = 0; i < LOG_LIMIT_KINDS; i++)
		(void)log_limit_take(&l, "4", &kinds[i], LOG_LIMIT_LINES, "", NOW);
	for (size_t i = 0; i < 2 * LOG_LIMIT_LINES; i++)
		ck_assert(
			log_limit_take(&l, "4", &kinds[LOG_LIMIT_KINDS], LOG_LIMIT_LINES, "", NOW));
	log_lines(&kinds[LOG_LIMIT_KINDS], LOG_LIMIT_LINES, LATER);
	ck_assert_uint_eq(log_lines(&kinds[LOG_LIMIT_KINDS], 1, LATER), 0);
}

TEST(a_long_line_is_cut_off)
{
	char text[2 * LOG_LIMIT_TEXT];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i <= LOG_LIMIT_LINES; i++)
		(void)log_limit_take(&l, "4", one, LOG_LIMIT_LINES, text, NOW);
	ck_assert(log_limit_next_suppressed(&l, LATER, &suppressed));
	ck_assert_uint_eq(strlen(suppressed.last), LOG_LIMIT_TEXT - 1);
}
