#include "daemon/broker/children/child.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "daemon/broker/children/children.h"
#include "daemon/common/log.h"
#include "tests/unit/suite.h"

static struct state state;
static struct children children;
static struct child child;
static int output = -1, words = -1; /* the log, and the child's end of the pipe */
static char text[1 << 16];

static void set_up(void)
{
	OK(loop_new(&state.loop));
	children.state = &state;
	child = (struct child){.type = &child_types[CHILD_UNWIND], .children = &children, .fd = -1};
	output = suite_file("");
	ck_assert_int_eq(dup2(output, STDERR_FILENO), STDERR_FILENO);
	log_init("sentry-profd", false);
	OK(child_log_open(&child, &words));
}

static void tear_down(void)
{
	close_fd(&words);
	child_log_close(&child);
	loop_free(state.loop);
}

static void say(const char *bytes, size_t size)
{
	ck_assert_int_eq(write(words, bytes, size), (ssize_t)size);
}

static void run(void)
{
	OK(loop_run_once(state.loop, 0));
}

static const char *logged(void)
{
	ssize_t n = pread(output, text, sizeof(text) - 1, 0);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	return text;
}

#define SAY(words) say(words, sizeof(words) - 1)
#define NAME	   "sentry-profd-unwind: "

FIXTURE(set_up, tear_down)

TEST(lines_are_logged_when_they_are_complete)
{
	SAY("<4>sentry-profd-unwind: warning: one\n<3>sentry-profd-unwind: two\nthr");
	run();
	ck_assert_str_eq(logged(), NAME "warning: one\n" NAME "two\n");
	SAY("ee\n");
	run();
	ck_assert_str_eq(logged(), NAME "warning: one\n" NAME "two\n" NAME "three\n");
}

TEST(a_process_cannot_write_a_line_without_its_name)
{
	SAY("sentry-profd: forged\n\nsentry-profd-ship: \r\b\033[1Aforged\n\0x\n");
	run();
	ck_assert_str_eq(logged(),
			 NAME "sentry-profd: forged\n" NAME "\n" NAME
			      "sentry-profd-ship: \\x0d\\x08\\x1b[1Aforged\n" NAME "?x\n");
}

TEST(the_last_words_are_logged_when_the_process_has_ended)
{
	SAY("one\ntwo");
	close_fd(&words);
	child_log_close(&child);
	ck_assert_str_eq(logged(), NAME "one\n" NAME "two\n");
	ck_assert_ptr_null(child.log);
}

TEST(a_line_without_an_end_is_logged_in_parts)
{
	static char many[16384];

	memset(many, 'x', sizeof(many));
	say(many, sizeof(many));
	for (int i = 0; i < 4; i++)
		run();
	ck_assert_uint_gt(strlen(logged()), sizeof(many) / 2);
}

static int unread(void)
{
	int n;

	OK(ioctl(words, FIONREAD, &n));
	return n;
}

/* The pipe stays full until the loop watches it again, once a second. */
TEST(a_process_that_writes_too_much_waits)
{
	static char many[65536];
	int left;

	memset(many, '\n', sizeof(many));
	say(many, sizeof(many));
	for (int i = 0; i < 100; i++)
		run();
	left = unread();
	ck_assert_int_gt(left, (int)sizeof(many) / 2);
	loop_resume(state.loop);
	for (int i = 0; i < 100; i++)
		run();
	ck_assert_int_lt(unread(), left);
	ck_assert_int_gt(unread(), (int)sizeof(many) / 2);
	ck_assert_uint_eq(strlen(logged()), LOG_RELAY_LINES * strlen(NAME "\n"));
}

/* capture may have a thread stopped when it logs a line. */
TEST(only_capture_does_not_wait_for_the_broker)
{
	ck_assert_int_eq(fcntl(words, F_GETFL) & O_NONBLOCK, 0);
	close_fd(&words);
	child_log_close(&child);
	child.type = &child_types[CHILD_CAPTURE];
	OK(child_log_open(&child, &words));
	ck_assert_int_ne(fcntl(words, F_GETFL) & O_NONBLOCK, 0);
	SAY("<4>sentry-profd-capture: warning: one\n");
	run();
	ck_assert_str_eq(logged(), "sentry-profd-capture: warning: one\n");
}
