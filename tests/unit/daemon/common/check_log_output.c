/* The log does not wait for the reader of stderr. If it does, SIGALRM ends the test. */
#include "daemon/common/log_output.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "tests/unit/suite.h"

#define NOBODY 65534

/* What stderr is. FOREIGN: the process may not open it anew. */
enum kind {
	PIPE,
	FOREIGN_PIPE,
	SOCKET,
	TERMINAL,
	FOREIGN_TERMINAL,
	KINDS,
};

static int end = -1;	/* of the reader */
static int shared = -1; /* stderr, as another process has it */
static char text[1 << 20];

static bool is_terminal(enum kind kind)
{
	return kind == TERMINAL || kind == FOREIGN_TERMINAL;
}

static void make_pair(enum kind kind)
{
	int pair[2];

	if (is_terminal(kind)) {
		end = posix_openpt(O_RDWR | O_NOCTTY);
		OK(grantpt(end));
		OK(unlockpt(end));
		shared = open(ptsname(end), O_RDWR | O_NOCTTY);
	} else {
		OK(kind == SOCKET ? socketpair(AF_UNIX, SOCK_STREAM, 0, pair) : pipe(pair));
		end = pair[0];
		shared = pair[1];
	}
	ck_assert_int_ge(shared, 0);
	OK(fcntl(end, F_SETFL, O_NONBLOCK));
}

static void set_up(enum kind kind)
{
	(void)alarm(30);
	make_pair(kind);
	ck_assert_int_eq(dup2(shared, STDERR_FILENO), STDERR_FILENO);
	if (kind == FOREIGN_PIPE || kind == FOREIGN_TERMINAL) {
		OK(fchmod(shared, 0));
		if (geteuid() == 0)
			OK(seteuid(NOBODY));
	}
	log_init("here", false);
	log_output_never_waits();
	if (geteuid() == NOBODY)
		OK(seteuid(0));
}

/* Writes until there is no room. The flag is for this function only. */
static void fill(enum kind kind)
{
	if (is_terminal(kind)) {
		OK(tcflow(shared, TCOOFF));
		return;
	}
	OK(fcntl(shared, F_SETFL, O_NONBLOCK));
	while (write(shared, text, 4096) > 0 || write(shared, text, 1) > 0)
		continue;
	OK(fcntl(shared, F_SETFL, 0));
}

/* Reads all that was written, and returns it as a text. */
static const char *read_all(enum kind kind)
{
	size_t size = 0;
	ssize_t n;

	if (is_terminal(kind))
		OK(tcflow(shared, TCOON));
	while ((n = read(end, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)n;
	text[size] = '\0';
	return text;
}

TESTS(lines_without_room_are_lost_and_counted, KINDS)
{
	const enum kind kind = (enum kind)_i;

	set_up(kind);
	log_error("one");
	HAS(read_all(kind), "here: one");
	memset(text, ' ', sizeof(text));
	fill(kind);
	for (int i = 0; i < 3; i++)
		log_error("lost");
	log_report_suppressed();
	LACKS(read_all(kind), "lost");
	log_report_suppressed();
	HAS(read_all(kind), "here: warning: 3 lines of the log are missing here");
	log_error("two");
	log_report_suppressed();
	HAS(read_all(kind), "here: two");
	LACKS(text, "missing");
	/* The other process's description is as it was. */
	ck_assert_int_eq(fcntl(shared, F_GETFL) & O_NONBLOCK, 0);
}

/* The first of the lines to be written after a loss says how many were lost. */
TESTS(the_number_of_lost_lines_is_before_the_next_line, KINDS)
{
	const enum kind kind = (enum kind)_i;
	const char *number;

	set_up(kind);
	fill(kind);
	log_error("lost");
	(void)read_all(kind);
	log_error("next");
	number = strstr(read_all(kind), "here: warning: 1 line of the log is missing here");
	ck_assert_ptr_nonnull(number);
	HAS(number, "here: next");
}

TEST(a_line_that_was_cut_ends_before_the_next_one)
{
	static char words[4096 + 1];

	set_up(PIPE);
	/* A page, the smallest. */
	ck_assert_int_ge(fcntl(shared, F_SETPIPE_SZ, 1), 0);
	memset(words, 'x', sizeof(words) - 1);
	log_error("%s", words);
	ck_assert_uint_eq(strlen(read_all(PIPE)), 4096);
	log_error("next");
	ck_assert_str_eq(read_all(PIPE), "\nhere: warning: 1 line of the log is missing here: the "
					 "reader of standard error did not read\nhere: next\n");
}

/* The description is still the same: its position moves. */
TEST(a_regular_file_is_not_opened_anew)
{
	int fd = suite_file("");

	ck_assert_int_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	log_init("here", false);
	log_output_never_waits();
	log_error("one");
	ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), (off_t)strlen("here: one\n"));
	ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}
