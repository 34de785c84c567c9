#include "daemon/capture/broker_link.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/msg/msg_io.h"

static void send_or_exit(const void *message, size_t size, const int *fds, size_t n_fds)
{
	if (ipc_send(MSG_FD, message, size, fds, n_fds) < 0)
		exit(EXIT_FAILURE);
}

void broker_link_state(uint32_t target, enum target_state state, int error)
{
	const struct msg_target_state m = {
		.h = MSG_HEADER(MSG_TARGET_STATE),
		.target = target,
		.state = state,
		.error = error,
	};

	send_or_exit(&m, sizeof(m), NULL, 0);
}

void broker_link_ring_made(uint32_t ring, int fd)
{
	const struct msg_id m = {.h = MSG_HEADER(MSG_RING_MADE), .id = ring};

	send_or_exit(&m, sizeof(m), &fd, 1);
}

void broker_link_ring_broken(uint32_t ring)
{
	if (msg_send_id(MSG_FD, MSG_RING_BROKEN, ring) < 0)
		exit(EXIT_FAILURE);
}

void broker_link_done(void)
{
	if (msg_send_id(MSG_FD, MSG_CAPTURE_DONE, 0) < 0)
		exit(EXIT_FAILURE);
}

/* Thousands of children may be born while the broker is stopped. */
bool broker_link_born(int32_t pid)
{
	const struct msg_id m = {
		.h = MSG_HEADER(MSG_CHILD_BORN),
		.id = (uint32_t)pid,
	};

	if (send(MSG_FD, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (errno != EAGAIN)
		exit(EXIT_FAILURE);
	return false;
}
