#include "daemon/capture/broker_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/common/log.h"
#include "daemon/common/resource_shortage.h"
#include "daemon/msg/msg_io.h"

/* r: the result of ipc_send(). Logs no line if the broker has ended (-EPIPE). */
static void exit_if_failed(int r)
{
	if (r == 0)
		return;
	if (r != -EPIPE)
		log_error("cannot send to sentry-profd: %s", strerror(-r));
	exit(EXIT_FAILURE);
}

void broker_link_state(const struct msg_target_state *m)
{
	exit_if_failed(ipc_send(MSG_FD, m, sizeof(*m), NULL, 0));
}

void broker_link_ring_made(uint32_t ring, int fd)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_RING_MADE), .id = ring};

	exit_if_failed(ipc_send(MSG_FD, &m, sizeof(m), &fd, 1));
}

void broker_link_ring_broken(uint32_t ring)
{
	exit_if_failed(msg_send_id(MSG_FD, MSG_RING_BROKEN, ring));
}

void broker_link_done(void)
{
	exit_if_failed(msg_send_id(MSG_FD, MSG_CAPTURE_DONE, 0));
}

/* Thousands of children may be born while the broker is stopped. */
static bool send_pid(enum msg_type type, int32_t pid)
{
	const struct msg_id m = {
		.h = {.type = type, .size = sizeof(m)},
		.id = (uint32_t)pid,
	};

	if (send(MSG_FD, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (!resource_shortage_is(errno))
		exit_if_failed(errno == ECONNRESET ? -EPIPE : -errno);
	return false;
}

bool broker_link_born(int32_t pid)
{
	return send_pid(MSG_CHILD_BORN, pid);
}

bool broker_link_exec_held(int32_t pid)
{
	return send_pid(MSG_EXEC_HELD, pid);
}
