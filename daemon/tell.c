#include "daemon/tell.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/child.h"

static void tell(const void *message, size_t size, const int *fds, size_t n_fds)
{
	if (ipc_send(MSG_FD, message, size, fds, n_fds) < 0)
		exit(EXIT_FAILURE);
}

void tell_state(uint32_t target, enum target_state state, int error)
{
	const struct msg_target_state m = {
		.h = MSG_HEADER(MSG_TARGET_STATE, msg_target_state),
		.target = target,
		.state = state,
		.error = error,
	};

	tell(&m, sizeof(m), NULL, 0);
}

void tell_ring_made(uint32_t ring, int fd)
{
	const struct msg_ring_made m = {
		.h = MSG_HEADER(MSG_RING_MADE, msg_ring_made),
		.ring = ring,
	};

	tell(&m, sizeof(m), &fd, 1);
}

void tell_ring_broken(uint32_t ring)
{
	const struct msg_ring_broken m = {
		.h = MSG_HEADER(MSG_RING_BROKEN, msg_ring_broken),
		.ring = ring,
	};

	tell(&m, sizeof(m), NULL, 0);
}

void tell_done(void)
{
	const struct msg_capture_done m = {
		.h = MSG_HEADER(MSG_CAPTURE_DONE, msg_capture_done),
	};

	tell(&m, sizeof(m), NULL, 0);
}

/* Children may be born by the thousand while the broker is stopped. */
bool tell_born(int32_t pid)
{
	const struct msg_child_born m = {
		.h = MSG_HEADER(MSG_CHILD_BORN, msg_child_born),
		.pid = pid,
	};

	if (send(MSG_FD, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return true;
	if (errno != EAGAIN)
		exit(EXIT_FAILURE);
	return false;
}
