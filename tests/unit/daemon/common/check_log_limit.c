#include "daemon/common/log_limit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

#define NOW   (1000 * NS_PER_SEC)
#define LATER (NOW + LOG_LIMIT_WINDOW_NS)

static const char one[] = "process %d", other[] = "file %d";
static struct log_limit l;
static struct log_limit_suppressed left;

static void set_up(void)
{
	memset(&l, 0, sizeof(l));
}

/* n lines of a kind; returns how many may be said. */
static unsigned int say(const char *format, unsigned int n, uint64_t now)
{
	unsigned int said = 0;
	char text[96];

	for (unsigned int i = 1; i <= n; i++) {
		(void)snprintf(text, sizeof(text), "%s, %u", format, i);
		said += log_limit_take(&l, "4", format, text, now);
	}
	return said;
}

FIXTURE(set_up, NULL)

TEST(some_are_said)
{
	ck_assert_uint_eq(say(one, LOG_LIMIT_LINES, NOW), LOG_LIMIT_LINES);
	ck_assert(!log_limit_next_suppressed(&l, LATER, &left));
	ck_assert_uint_eq(say(one, LOG_LIMIT_LINES, LATER), LOG_LIMIT_LINES);
}

TEST(the_rest_is_counted)
{
	ck_assert_uint_eq(say(one, LOG_LIMIT_LINES + 7, NOW), LOG_LIMIT_LINES);
	ck_assert(!log_limit_next_suppressed(&l, LATER - 1, &left));
	ck_assert(log_limit_next_suppressed(&l, LATER, &left));
	ck_assert_uint_eq(left.lines, 7);
	ck_assert_str_eq(left.level, "4");
	ck_assert_str_eq(left.last, "process %d, 37");
	ck_assert(!log_limit_next_suppressed(&l, LATER, &left));
	ck_assert_uint_eq(say(one, 1, LATER), 1);
}

/* Not told yet, though its window is over: it goes on being counted. */
TEST(nothing_is_lost_between)
{
	say(one, LOG_LIMIT_LINES + 7, NOW);
	ck_assert_uint_eq(say(one, 1, LATER), 0);
	ck_assert(log_limit_next_suppressed(&l, LATER, &left));
	ck_assert_uint_eq(left.lines, 8);
}

TEST(each_kind_for_itself)
{
	say(one, LOG_LIMIT_LINES + 1, NOW);
	ck_assert_uint_eq(say(other, LOG_LIMIT_LINES + 2, NOW), LOG_LIMIT_LINES);
	ck_assert(log_limit_next_suppressed(&l, LATER, &left));
	ck_assert_uint_eq(left.lines, 1);
	ck_assert(log_limit_next_suppressed(&l, LATER, &left));
	ck_assert_uint_eq(left.lines, 2);
}

/* What there is no place for is said; places that tell nothing are used. */
TEST(many_kinds)
{
	static char kinds[LOG_LIMIT_KINDS + 1];

	for (size_t i = 0; i < LOG_LIMIT_KINDS; i++)
		(void)log_limit_take(&l, "4", &kinds[i], "", NOW);
	for (size_t i = 0; i < 2 * LOG_LIMIT_LINES; i++)
		ck_assert(log_limit_take(&l, "4", &kinds[LOG_LIMIT_KINDS], "", NOW));
	say(&kinds[LOG_LIMIT_KINDS], LOG_LIMIT_LINES, LATER);
	ck_assert_uint_eq(say(&kinds[LOG_LIMIT_KINDS], 1, LATER), 0);
}

TEST(a_long_line)
{
	char text[2 * LOG_LIMIT_TEXT];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i <= LOG_LIMIT_LINES; i++)
		(void)log_limit_take(&l, "4", one, text, NOW);
	ck_assert(log_limit_next_suppressed(&l, LATER, &left));
	ck_assert_uint_eq(strlen(left.last), LOG_LIMIT_TEXT - 1);
}
