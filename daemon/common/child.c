#include "daemon/common/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/common/log.h"

uint32_t msg_type_of(const struct ipc_message *m)
{
	const struct msg_header *header = (const void *)m->bytes;

	if (m->size < sizeof(*header) || header->size != m->size)
		return 0;
	return header->type;
}

/* What a message of each type has to have. */
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

static bool is_broker_socket(void)
{
	int type;
	socklen_t size = sizeof(type);

	return getsockopt(MSG_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

const struct msg_init *child_start(int argc, char **argv, const char *name,
				   struct ipc_message *ret_init)
{
	const struct msg_init *init;

	log_init(name, false);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("%s %s\n", name, SENTRY_PROFD_VERSION);
		exit(EXIT_SUCCESS);
	}
	if (argc != 1 || !is_broker_socket()) {
		log_error("this program is started by sentry-profd, not by "
			  "hand");
		exit(2);
	}
	if (ipc_recv(MSG_FD, ret_init) != 1)
		exit(EXIT_FAILURE);
	init = msg_as(ret_init, MSG_INIT);
	if (init == NULL) {
		log_error("the first message is not what it must be");
		exit(EXIT_FAILURE);
	}
	log_init(name, init->debug);
	return init;
}

void child_is_ready(void)
{
	if (msg_send_id(MSG_FD, MSG_READY, 0) < 0)
		exit(EXIT_FAILURE);
}
