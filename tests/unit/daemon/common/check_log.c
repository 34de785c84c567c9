#include "daemon/common/log.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/common/log_limit.h"
#include "tests/unit/suite.h"

static int output = -1;
static char text[1 << 16];

/* Each test runs in a process of its own, which Check forks. */
static void set_up(void)
{
	output = suite_file("");
	ck_assert_int_eq(dup2(output, STDERR_FILENO), STDERR_FILENO);
	log_init("here", false);
}

static const char *logged(void)
{
	ssize_t n = pread(output, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	return text;
}

static unsigned int lines(void)
{
	unsigned int n = 0;

	for (const char *c = logged(); *c != '\0'; c++)
		n += *c == '\n';
	return n;
}

static void flood_errors(unsigned int i)
{
	log_error("error %u", i);
}

static void flood_warnings(unsigned int i)
{
	log_warning("warning %u", i);
}

static void flood_relayed(unsigned int i)
{
	char line[64];

	(void)snprintf(line, sizeof(line), "<4>child: warning: line %u", i);
	(void)log_relay("child", line);
}

static void flood_relayed_debug(unsigned int i)
{
	(void)i;
	(void)log_relay("child", "<7>child: debug: line");
}

FIXTURE(set_up, NULL)

static const struct {
	void (*flood)(unsigned int i);
	unsigned int logged;
} floods[] = {
	{flood_errors, LOG_LIMIT_LINES},
	{flood_warnings, LOG_LIMIT_LINES},
	{flood_relayed, LOG_RELAY_LINES},
	{flood_relayed_debug, 0},
};

TESTS(a_flood_of_one_kind_is_limited, array_size(floods))
{
	for (unsigned int i = 0; i < 10000; i++)
		floods[_i].flood(i);
	ck_assert_uint_eq(lines(), floods[_i].logged);
}

TEST(an_entry_of_a_list_and_a_line_of_debug_are_not_limited)
{
	log_init("here", true);
	for (unsigned int i = 0; i < 200; i++) {
		log_list_entry(true, "entry %u", i);
		log_debug("line %u", i);
		(void)log_relay("child", "<7>child: debug: line");
	}
	ck_assert_uint_eq(lines(), 600);
}

TEST(a_relayed_line_begins_with_the_name_that_the_broker_gives)
{
	static const struct {
		const char *line, *logged;
	} relayed[] = {
		{"<3>child: text", "child: text\n"},
		{"<4>child: warning: text", "child: warning: text\n"},
		/* not as daemon/common/log.c writes it */
		{"text", "child: text\n"},
		{"<4>text", "child: warning: text\n"},
		{"here: text", "child: here: text\n"},
		{"<9>child: text", "child: text\n"},
		{"<", "child: <\n"},
		{"", "child: \n"},
		{"a\rhere: \033[2Jb", "child: a\\x0dhere: \\x1b[2Jb\n"},
	};
	size_t at = 0;

	for (size_t i = 0; i < array_size(relayed); i++) {
		ck_assert(log_relay("child", relayed[i].line));
		ck_assert_str_eq(logged() + at, relayed[i].logged);
		at += strlen(relayed[i].logged);
	}
}

TEST(log_relay_tells_the_caller_of_a_suppressed_line)
{
	for (unsigned int i = 0; i < LOG_RELAY_LINES; i++)
		ck_assert(log_relay("child", "<4>text"));
	ck_assert(!log_relay("child", "<4>text"));
	ck_assert(log_relay("another child", "<4>text"));
}
