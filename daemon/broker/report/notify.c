#include "daemon/broker/report/notify.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/digits.h"

/* sd_watchdog_enabled(3) recommends two; on a busy machine the broker may be late. */
#define FEEDS_PER_WATCHDOG 4

#define MESSAGE_MAX (NOTIFY_STATUS_MAX + 100)

/* The longest interval; keeps nanoseconds in range. */
#define WATCHDOG_MAX_US (UINT64_MAX / 2 / NS_PER_US)

/*
 * Parses "/path" or "@name". AF_VSOCK addresses, by which a virtual machine notifies its host,
 * are refused.
 */
static int parse_address(struct notify *n, const char *text)
{
	size_t size = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || text[1] == '\0' ||
	    size >= sizeof(n->address.sun_path))
		return -EINVAL;
	n->address.sun_family = AF_UNIX;
	memcpy(n->address.sun_path, text, size);
	if (text[0] == '@')
		n->address.sun_path[0] = '\0';
	else
		size++; /* the size includes the NUL of a path; an abstract name has none */
	n->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
	return 0;
}

/*
 * Parses the interval. A watchdog for another process is none for this one:
 * sd_watchdog_enabled(3).
 */
static int parse_watchdog(struct notify *n, const char *interval, const char *of)
{
	uint64_t us, pid;

	if (interval == NULL)
		return 0;
	if (of != NULL && !digits_number(of, 1, INT_MAX, &pid))
		return -EINVAL;
	if (of != NULL && pid != (uint64_t)getpid())
		return 0;
	if (!digits_number(interval, 1, WATCHDOG_MAX_US, &us))
		return -EINVAL;
	n->watchdog_ns = us * NS_PER_US;
	return 0;
}

static int parse_environment(struct notify *n)
{
	const char *address = getenv("NOTIFY_SOCKET");
	int r;

	if (address == NULL)
		return -ENOENT;
	r = parse_address(n, address);
	if (r == 0)
		r = parse_watchdog(n, getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
	return r;
}

int notify_init(struct notify *ret)
{
	int r;

	*ret = (struct notify){.fd = -1};
	r = parse_environment(ret);
	/* No child process may send messages in the daemon's name. */
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	ret->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return ret->fd < 0 ? -errno : 0;
}

void notify_fini(struct notify *n)
{
	close_fd(&n->fd);
}

static void printf_like(3, 4) append(char message[MESSAGE_MAX], size_t *at, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(message + *at, MESSAGE_MAX - *at, format, args);
	va_end(args);
	if (n > 0)
		*at = min_u64(*at + (size_t)n, MESSAGE_MAX - 1);
}

static void append_state(const struct notify *n, char message[MESSAGE_MAX], size_t *at)
{
	switch (n->state) {
	case NOTIFY_STARTING:
		return;
	case NOTIFY_READY:
		append(message, at, "READY=1\n");
		return;
	case NOTIFY_RELOADING:
		append(message, at, "RELOADING=1\nMONOTONIC_USEC=%llu\n",
		       (unsigned long long)(n->state_ns / NS_PER_US));
		return;
	case NOTIFY_STOPPING:
		append(message, at, "STOPPING=1\n");
		return;
	}
}

/* Sends all that is due in one datagram, so that it arrives completely or not at all. */
static void send_due(struct notify *n, uint64_t now_ns, bool feeds, uint64_t beat_ns)
{
	char message[MESSAGE_MAX];
	size_t size = 0;

	if (n->state_due)
		append_state(n, message, &size);
	if (n->status_due)
		append(message, &size, "STATUS=%s\n", n->status);
	if (feeds)
		append(message, &size, "WATCHDOG=1\n");
	if (size == 0)
		return;
	/*
	 * Uses the address each time, since the manager may have replaced its socket. After an
	 * error the next turn tries again.
	 */
	if (sendto(n->fd, message, size, MSG_NOSIGNAL, (const struct sockaddr *)&n->address,
		   n->address_size) < 0)
		return;
	n->state_due = false;
	n->status_due = false;
	if (!feeds)
		return;
	n->fed_ns = now_ns;
	n->fed_beat_ns = beat_ns;
}

void notify_state(struct notify *n, enum notify_state state, uint64_t now_ns)
{
	if (n->fd < 0 || state == n->state)
		return;
	n->state = state;
	n->state_ns = now_ns;
	n->state_due = true;
	send_due(n, now_ns, false, 0);
}

void notify_status(struct notify *n, const char *format, ...)
{
	char status[NOTIFY_STATUS_MAX];
	va_list args;
	int r;

	va_start(args, format);
	r = vsnprintf(status, sizeof(status), format, args);
	va_end(args);
	if (r < 0 || strcmp(status, n->status) == 0)
		return;
	/* A newline would end the line of the protocol. */
	for (char *p = status; *p != '\0'; p++)
		if (*p == '\n')
			*p = ' ';
	memcpy(n->status, status, sizeof(status));
	n->status_due = true;
}

void notify_check(struct notify *n, uint64_t now_ns, uint64_t beat_ns, bool is_idle)
{
	bool due = n->watchdog_ns != 0 &&
		   (n->fed_ns == 0 || now_ns - n->fed_ns >= n->watchdog_ns / FEEDS_PER_WATCHDOG);

	if (n->fd >= 0)
		send_due(n, now_ns, due && (is_idle || beat_ns != n->fed_beat_ns), beat_ns);
}
