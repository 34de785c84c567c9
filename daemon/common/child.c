#include "daemon/common/child.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/version.h"
#include "daemon/msg/msg_io.h"

static bool is_broker_socket(void)
{
	int type;
	socklen_t size = sizeof(type);

	return getsockopt(MSG_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

static bool has_number_of_parent(const struct ipc_message *m)
{
	uint64_t number;

	if (m->size < sizeof(struct msg_header) + sizeof(number))
		return false;
	memcpy(&number, m->bytes + offsetof(struct msg_init, number), sizeof(number));
	return number == msg_number();
}

static const char *executable(const char *link, char ret[PATH_MAX])
{
	const ssize_t n = readlink(link, ret, PATH_MAX - 1);

	ret[n < 0 ? 0 : n] = '\0';
	return n < 0 ? "sentry-profd" : ret;
}

static void log_other_version(void)
{
	char own[PATH_MAX], parent[PATH_MAX], link[32];

	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)getppid());
	log_error("%s and %s are of different versions: install both of the same one, and restart "
		  "sentry-profd if it runs as a service",
		  executable("/proc/self/exe", own), executable(link, parent));
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
		log_error("cannot receive the first message of sentry-profd: %s; this process ends",
			  strerror(-r));
	if (r != 1)
		exit(EXIT_FAILURE);
	init = has_number_of_parent(ret_init) ? msg_as(ret_init, MSG_INIT) : NULL;
	if (init == NULL) {
		log_other_version();
		exit(CHILD_OTHER_VERSION);
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
