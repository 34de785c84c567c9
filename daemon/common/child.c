#include "daemon/common/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/common/log.h"
#include "daemon/common/version.h"
#include "daemon/msg/msg_io.h"

static bool is_broker_socket(void)
{
	int type;
	socklen_t size = sizeof(type);

	return getsockopt(MSG_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

const struct msg_init *child_start(int argc, char **argv, const char *name, const char *library,
				   struct ipc_message *ret_init)
{
	const struct msg_init *init;
	int r;

	log_init(name, false);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("%s %s\n", name, version_text);
		if (library != NULL)
			printf("%s\n", library);
		exit(EXIT_SUCCESS);
	}
	if (argc != 1 || !is_broker_socket()) {
		log_error("this program is started by sentry-profd, not by hand");
		exit(2);
	}
	r = ipc_recv(MSG_FD, ret_init);
	if (r < 0)
		log_error("cannot receive the first message of the parent process: %s",
			  strerror(-r));
	if (r != 1)
		exit(EXIT_FAILURE);
	init = msg_as(ret_init, MSG_INIT);
	if (init == NULL) {
		log_error("this program does not fit the process that started it: install all "
			  "programs of sentry-profd in the same version (the first message is not "
			  "MSG_INIT)");
		exit(EXIT_FAILURE);
	}
	log_init(name, init->debug);
	return init;
}

void child_send_ready(void)
{
	int r = msg_send_id(MSG_FD, MSG_READY, 0);

	if (r < 0 && r != -EPIPE)
		log_error("cannot send to the parent process: %s", strerror(-r));
	if (r < 0)
		exit(EXIT_FAILURE);
}
