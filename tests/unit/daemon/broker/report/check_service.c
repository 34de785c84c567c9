#include "daemon/broker/report/service.h"

#include "tests/unit/suite.h"

static struct notify n;
static int manager; /* systemd's end of the socket */

/* Instead of notify_init(): an address that the kernel chooses. */
static void set_up(void)
{
	n = (struct notify){.address_size = sizeof(n.address)};
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	n.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(n.fd, 0);
	OK(bind(manager, (const struct sockaddr *)&(struct sockaddr_un){.sun_family = AF_UNIX},
		sizeof(sa_family_t)));
	OK(getsockname(manager, (struct sockaddr *)&n.address, &n.address_size));
}

static void tear_down(void)
{
	notify_fini(&n);
	close_fd(&manager);
}

/* Returns the oldest message that was not returned yet; "": none. */
static const char *said(void)
{
	static char text[256];
	ssize_t size = recv(manager, text, sizeof(text) - 1, 0);

	text[size > 0 ? size : 0] = '\0';
	return text;
}

FIXTURE(set_up, tear_down)

TEST(a_reload_is_reported)
{
	n.state = NOTIFY_READY;
	service_reloads(&n);
	HAS(said(), "RELOADING=1\n");
	service_reloaded(&n);
	ck_assert_str_eq(said(), "READY=1\n");
}

/* capture and ship have not started, and may fail to. */
TEST(a_reload_during_the_start_does_not_end_the_start)
{
	service_reloads(&n);
	service_reloaded(&n);
	ck_assert_str_eq(said(), "");
	ck_assert_int_eq(n.state, NOTIFY_STARTING);
}
