#include "daemon/msg/msg_io.h"

#include <errno.h>
#include <stddef.h>

#include "daemon/msg/msg_capture.h"
#include "daemon/msg/msg_ship.h"
#include "daemon/msg/msg_unwind.h"

uint64_t msg_number(void)
{
	return MSG_NUMBER;
}

uint32_t msg_type_of(const struct ipc_message *m)
{
	const struct msg_header *header = (const void *)m->bytes;

	if (m->size < sizeof(*header) || header->size != m->size)
		return 0;
	return header->type;
}

/* The size and the number of descriptors that each type requires. */
static const struct {
	uint32_t size;
	uint32_t fds;
} shapes[] = {
#define X(type, name, n_fds) [type] = {type##_SIZE, n_fds},
	MSG_LIST(X)
#undef X
};

const void *msg_as(const struct ipc_message *m, enum msg_type type)
{
	return msg_type_of(m) == type && m->size == shapes[type].size &&
			       m->n_fds >= shapes[type].fds
		       ? m->bytes
		       : NULL;
}

int msg_send_id(int socket, enum msg_type type, uint32_t id)
{
	const struct msg_id m = {.h = {type, sizeof(m)}, .id = id};

	return ipc_send(socket, &m, sizeof(m), NULL, 0);
}

int msg_send_number(int socket, enum msg_type type, uint64_t n)
{
	const struct msg_number m = {.h = {type, sizeof(m)}, .n = n};

	return ipc_send(socket, &m, sizeof(m), NULL, 0);
}

int msg_handle(const struct msg_rule *rules, size_t n, void *ctx, struct ipc_message *m)
{
	for (size_t i = 0; i < n; i++)
		if (msg_as(m, rules[i].type) != NULL)
			return rules[i].handle(ctx, m);
	return -EPROTO;
}
