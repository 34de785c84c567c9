#include "daemon/ctl/own_child.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/common/privileges.h"
#include "daemon/common/spawn.h"
#include "daemon/msg/msg_io.h"

int own_child_take(const struct own_child *c, enum msg_type type, struct ipc_message *m)
{
	int r = ipc_recv(c->fd, m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	ipc_close_fds(m);
	return msg_as(m, type) != NULL ? 0 : -EPROTO;
}

static int start(struct own_child *c, const char *name, const char *const *environment,
		 enum account account, const int *files, size_t n, uint32_t mask)
{
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT),
		.uid = PRIVILEGES_KEEP_ID,
		.gid = PRIVILEGES_KEEP_ID,
		.seccomp_kill = getenv("SENTRY_PROFD_SECCOMP_KILL") != NULL,
		.files = mask,
	};
	struct ipc_message m;
	int r;

	*c = (struct own_child){.fd = -1};
	r = spawn_child(name, environment, &c->pid, &c->fd);
	if (r < 0)
		return r;
	/* The broker does other work meanwhile; we wait. */
	if (fcntl(c->fd, F_SETFL, 0) < 0)
		return -errno;
	if (geteuid() == 0)
		account_ids(account, &init.uid, &init.gid);
	r = ipc_send(c->fd, &init, sizeof(init), files, n);
	return r < 0 ? r : own_child_take(c, MSG_READY, &m);
}

int own_child_start_ship(struct own_child *c, const int *files, size_t n, uint32_t mask)
{
	return start(c, "sentry-profd-ship", spawn_ship_environment, ACCOUNT_SHIP, files, n, mask);
}

int own_child_start_unwind(struct own_child *c, int page_fd)
{
	static const char *const none[] = {NULL};

	return start(c, "sentry-profd-unwind", none, ACCOUNT_UNWIND, &page_fd, 1, 0);
}

void own_child_end(struct own_child *c)
{
	close_fd(&c->fd);
	if (c->pid == 0)
		return;
	/* It may be asking still. */
	(void)kill(c->pid, SIGKILL);
	(void)waitpid(c->pid, NULL, 0);
	c->pid = 0;
}
