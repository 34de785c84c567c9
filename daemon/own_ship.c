#include "daemon/own_ship.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/accounts.h"
#include "daemon/child.h"
#include "daemon/spawn.h"

const char *const own_ship_environment[] = {
	"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
	"ALL_PROXY",  "no_proxy",    "NO_PROXY",    NULL,
};

int own_ship_take(const struct own_ship *s, uint32_t type, size_t size,
		  struct ipc_message *m)
{
	int r = ipc_recv(s->fd, m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	ipc_close_fds(m);
	return msg_of_size(m, size) != NULL && msg_type_of(m) == type ? 0
								      : -EPROTO;
}

int own_ship_start(struct own_ship *s, const int *files, size_t n,
		   uint32_t mask)
{
	struct msg_init init = {
		.h = MSG_HEADER(MSG_INIT, msg_init),
		.uid = MSG_ID_KEEP,
		.gid = MSG_ID_KEEP,
		.files = mask,
	};
	struct ipc_message m;
	int r;

	*s = (struct own_ship){.fd = -1};
	r = spawn_child("sentry-profd-ship", own_ship_environment, &s->pid,
			&s->fd);
	if (r < 0)
		return r;
	/* The broker does other work meanwhile; we wait. */
	if (fcntl(s->fd, F_SETFL, 0) < 0)
		return -errno;
	if (geteuid() == 0)
		account_ids(ACCOUNT_SHIP, &init.uid, &init.gid);
	r = ipc_send(s->fd, &init, sizeof(init), files, n);
	return r < 0 ? r
		     : own_ship_take(s, MSG_READY, sizeof(struct msg_ready),
				     &m);
}

void own_ship_end(struct own_ship *s)
{
	close_fd(&s->fd);
	if (s->pid == 0)
		return;
	/* It may be asking still. */
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	s->pid = 0;
}
