#include "daemon/ctl/common/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/common/privileges.h"
#include "daemon/common/spawn.h"
#include "daemon/config/accounts.h"
#include "daemon/msg/msg_io.h"

int helper_receive(const struct helper *h, enum msg_type type, struct ipc_message *m)
{
	int r = ipc_recv(h->fd, m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	ipc_close_fds(m);
	return msg_as(m, type) != NULL ? 0 : -EPROTO;
}

static int start(struct helper *h, const char *name, const char *const *environment,
		 enum account account, const int *files, size_t n, uint32_t mask)
{
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT),
		.number = msg_number(),
		.uid = PRIVILEGES_KEEP_ID,
		.gid = PRIVILEGES_KEEP_ID,
		.seccomp_kill = getenv("SENTRY_PROFD_SECCOMP_KILL") != NULL,
		.files = mask,
	};
	struct ipc_message m;
	int r;

	*h = (struct helper){.fd = -1};
	r = spawn_child(name, environment, -1, &h->pid, &h->fd);
	if (r < 0)
		return r;
	/* spawn_child() makes it nonblocking, for the broker's loop. */
	if (fcntl(h->fd, F_SETFL, 0) < 0)
		return -errno;
	if (geteuid() == 0)
		account_ids(account, &init.uid, &init.gid);
	r = ipc_send(h->fd, &init, sizeof(init), files, n);
	return r < 0 ? r : helper_receive(h, MSG_READY, &m);
}

int helper_start_ship(struct helper *h, const int *files, size_t n, uint32_t mask)
{
	return start(h, "sentry-profd-ship", spawn_ship_environment, ACCOUNT_SHIP, files, n, mask);
}

int helper_start_unwind(struct helper *h, int page_fd)
{
	static const char *const none[] = {NULL};

	return start(h, "sentry-profd-unwind", none, ACCOUNT_UNWIND, &page_fd, 1, 0);
}

void helper_kill(struct helper *h)
{
	close_fd(&h->fd);
	if (h->pid == 0)
		return;
	/* The helper may wait for an answer, so closing the socket does not end it. */
	(void)kill(h->pid, SIGKILL);
	(void)waitpid(h->pid, NULL, 0);
	h->pid = 0;
}
