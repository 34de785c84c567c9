#include "daemon/broker/report/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

#define NOW (1000 * NS_PER_SEC)

static struct notify n;
static int manager = -1; /* systemd's end of the socket */
static char path[64];

static void listen_at(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t size = strlen(name);

	ck_assert_uint_lt(size, sizeof(address.sun_path));
	memcpy(address.sun_path, name, size);
	if (name[0] == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(manager, 0);
	OK(bind(manager, (const struct sockaddr *)&address,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)));
}

static void set_up(void)
{
	(void)snprintf(path, sizeof(path), "%s/socket", suite_directory());
	listen_at(path);
	(void)setenv("NOTIFY_SOCKET", path, 1);
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
}

static void tear_down(void)
{
	notify_fini(&n);
	close_fd(&manager);
}

/* Returns the messages since the last call; "": none. */
static const char *said(void)
{
	static char text[1024];
	ssize_t size = recv(manager, text, sizeof(text) - 1, 0);

	text[size > 0 ? size : 0] = '\0';
	return text;
}

#define assert_said(words) ck_assert_str_eq(said(), words)

FIXTURE(set_up, tear_down)

TEST(a_new_state_is_sent_once)
{
	OK(notify_init(&n));
	ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
	notify_check(&n, NOW, 1, false);
	assert_said("");
	notify_state(&n, NOTIFY_READY, NOW);
	assert_said("READY=1\n");
	notify_state(&n, NOTIFY_READY, NOW);
	assert_said("");
	notify_state(&n, NOTIFY_RELOADING, NOW + 7000);
	assert_said("RELOADING=1\nMONOTONIC_USEC=1000000007\n");
	notify_state(&n, NOTIFY_READY, NOW);
	assert_said("READY=1\n");
	notify_state(&n, NOTIFY_STOPPING, NOW);
	assert_said("STOPPING=1\n");
}

TEST(a_new_status_is_sent_once_as_one_line)
{
	OK(notify_init(&n));
	notify_status(&n, "%d processes", 3);
	assert_said("");
	notify_check(&n, NOW, 1, false);
	assert_said("STATUS=3 processes\n");
	notify_status(&n, "%d processes", 3);
	notify_check(&n, NOW, 1, false);
	assert_said("");
	notify_status(&n, "a\nREADY=1");
	notify_check(&n, NOW, 1, false);
	assert_said("STATUS=a READY=1\n");
}

TEST(a_long_status_is_cut_off)
{
	char text[2 * NOTIFY_STATUS_MAX];

	OK(notify_init(&n));
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	notify_status(&n, "%s", text);
	notify_check(&n, NOW, 1, false);
	ck_assert_uint_eq(strlen(said()), strlen("STATUS=\n") + NOTIFY_STATUS_MAX - 1);
	/* The longest combination of lines fits into one message. */
	text[0] = 'y';
	notify_status(&n, "%s", text);
	n.watchdog_ns = NS_PER_SEC;
	n.state = NOTIFY_RELOADING;
	n.state_ns = UINT64_MAX;
	n.state_due = true;
	notify_check(&n, NOW, 1, true);
	HAS(said(), "x\nWATCHDOG=1\n");
}

/* The interval is 8 s, so WATCHDOG=1 is due every 2 s. */
TEST(the_watchdog_gets_a_message_while_the_loop_beats)
{
	(void)setenv("WATCHDOG_USEC", "8000000", 1);
	OK(notify_init(&n));
	ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
	notify_check(&n, NOW, 1, false);
	assert_said("WATCHDOG=1\n");
	notify_check(&n, NOW + 2 * NS_PER_SEC - 1, 2, false);
	assert_said("");
	notify_check(&n, NOW + 2 * NS_PER_SEC, 2, false);
	assert_said("WATCHDOG=1\n");
	/* WATCHDOG=1 waits for a new beat, and follows it at once. */
	for (uint64_t s = 4; s < 20; s++)
		notify_check(&n, NOW + s * NS_PER_SEC, 2, false);
	assert_said("");
	notify_check(&n, NOW + 20 * NS_PER_SEC, 3, false);
	assert_said("WATCHDOG=1\n");
	/* An idle daemon needs no new beat. */
	notify_check(&n, NOW + 22 * NS_PER_SEC, 3, true);
	assert_said("WATCHDOG=1\n");
}

TEST(a_watchdog_for_another_process_gets_no_message)
{
	char pid[16];

	(void)setenv("WATCHDOG_USEC", "8000000", 1);
	(void)setenv("WATCHDOG_PID", "1", 1);
	OK(notify_init(&n));
	notify_check(&n, NOW, 1, true);
	assert_said("");
	notify_fini(&n);
	(void)snprintf(pid, sizeof(pid), "%d", getpid());
	(void)setenv("NOTIFY_SOCKET", path, 1);
	(void)setenv("WATCHDOG_USEC", "8000000", 1);
	(void)setenv("WATCHDOG_PID", pid, 1);
	OK(notify_init(&n));
	notify_check(&n, NOW, 1, true);
	assert_said("WATCHDOG=1\n");
}

/* The daemon does not wait for a manager that does not read. */
TEST(messages_to_a_full_socket_are_sent_later)
{
	(void)setenv("WATCHDOG_USEC", "8000000", 1);
	OK(notify_init(&n));
	while (sendto(n.fd, "x", 1, 0, (const struct sockaddr *)&n.address, n.address_size) == 1)
		continue;
	ck_assert_int_eq(errno, EAGAIN);
	notify_state(&n, NOTIFY_READY, NOW);
	notify_status(&n, "busy");
	notify_check(&n, NOW, 1, false);
	while (strcmp(said(), "x") == 0)
		continue;
	assert_said("");
	notify_check(&n, NOW, 1, false);
	assert_said("READY=1\nSTATUS=busy\nWATCHDOG=1\n");
	notify_check(&n, NOW, 2, false);
	assert_said("");
}

TEST(the_socket_may_have_an_abstract_name)
{
	char name[64];

	close_fd(&manager);
	(void)snprintf(name, sizeof(name), "@check-notify-%d", getpid());
	listen_at(name);
	(void)setenv("NOTIFY_SOCKET", name, 1);
	OK(notify_init(&n));
	notify_state(&n, NOTIFY_READY, NOW);
	assert_said("READY=1\n");
}

TEST(without_a_socket_nothing_is_sent)
{
	(void)unsetenv("NOTIFY_SOCKET");
	(void)setenv("WATCHDOG_USEC", "8000000", 1);
	OK(notify_init(&n));
	ck_assert_int_eq(n.fd, -1);
	notify_state(&n, NOTIFY_READY, NOW);
	notify_status(&n, "busy");
	notify_check(&n, NOW, 1, true);
}

static const struct {
	const char *name, *value;
} wrong[] = {
	{"NOTIFY_SOCKET", ""},
	{"NOTIFY_SOCKET", "@"},
	{"NOTIFY_SOCKET", "socket"},
	{"NOTIFY_SOCKET", "vsock:2:1234"},
	{"NOTIFY_SOCKET", "/a/path/that/is/longer/than/the/108/bytes/that/an/address/of/a/unix/"
			  "socket/has/room/for/by/the/kernel/s/rules"},
	{"WATCHDOG_USEC", ""},
	{"WATCHDOG_USEC", "0"},
	{"WATCHDOG_USEC", "-1"},
	{"WATCHDOG_USEC", "5s"},
	{"WATCHDOG_USEC", "18446744073709551615"},
	{"WATCHDOG_PID", "x"},
	{"WATCHDOG_PID", "4294967296"},
};

TESTS(a_wrong_variable_is_refused, array_size(wrong))
{
	(void)setenv("WATCHDOG_USEC", "8000000", 1);
	(void)setenv(wrong[_i].name, wrong[_i].value, 1);
	ck_assert_int_eq(notify_init(&n), -EINVAL);
	ck_assert_int_eq(n.fd, -1);
	notify_check(&n, NOW, 1, true);
	assert_said("");
}
