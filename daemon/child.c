#include "daemon/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/log.h"

uint32_t msg_type_of(const struct ipc_message *m)
{
	const struct msg_header *header = (const void *)m->bytes;

	if (m->size < sizeof(*header) || header->size != m->size)
		return 0;
	return header->type;
}

const void *msg_of_size(const struct ipc_message *m, size_t size)
{
	return msg_type_of(m) != 0 && m->size == size ? m->bytes : NULL;
}

int msg_handle(const struct msg_rule *rules, size_t n, void *ctx,
	       struct ipc_message *m)
{
	uint32_t type = msg_type_of(m);

	for (size_t i = 0; i < n; i++)
		if (rules[i].type == type)
			return m->size == rules[i].size &&
					       m->n_fds >= rules[i].fds
				       ? rules[i].handle(ctx, m)
				       : -EPROTO;
	return -EPROTO;
}

static bool is_broker_socket(void)
{
	int type;
	socklen_t size = sizeof(type);

	return getsockopt(MSG_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	       type == SOCK_SEQPACKET;
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
	init = msg_of_size(ret_init, sizeof(*init));
	if (init == NULL || init->h.type != MSG_INIT) {
		log_error("the first message is not what it must be");
		exit(EXIT_FAILURE);
	}
	log_init(name, init->debug);
	return init;
}

void child_is_ready(void)
{
	const struct msg_ready m = {.h = MSG_HEADER(MSG_READY, msg_ready)};

	if (ipc_send(MSG_FD, &m, sizeof(m), NULL, 0) < 0)
		exit(EXIT_FAILURE);
}
