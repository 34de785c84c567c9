#include "daemon/ctl/common/spawn.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/common/privileges.h"
#include "daemon/common/spawn.h"
#include "daemon/config/accounts.h"
#include "daemon/msg/msg_io.h"

int profd_child_start(struct profd_child *p, char *const *argv, int out_fd,
		      bool (*prepare)(const void *ctx), const void *ctx)
{
	const int32_t parent = getpid();
	char exe[PATH_MAX];
	int null, r;
	pid_t pid;

	*p = (struct profd_child){.log_fd = -1};
	r = spawn_find(argv[0], exe);
	if (r < 0)
		return r;
	p->log_fd = memfd_create("sentry-profd", MFD_CLOEXEC);
	if (p->log_fd < 0)
		return -errno;
	(void)fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		p->pid = pid;
		return 0;
	}
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0 || getppid() != parent ||
	    (prepare != NULL && !prepare(ctx)) || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(out_fd < 0 ? null : out_fd, STDOUT_FILENO) < 0 ||
	    dup2(p->log_fd, STDERR_FILENO) < 0)
		_exit(SPAWN_FAILED);
	(void)execv(exe, argv);
	_exit(SPAWN_FAILED);
}

void profd_child_show_log(const struct profd_child *p)
{
	char bytes[4096];
	ssize_t n;

	if (p->log_fd < 0 || lseek(p->log_fd, 0, SEEK_SET) < 0)
		return;
	while ((n = read(p->log_fd, bytes, sizeof(bytes))) > 0)
		(void)!write_all(STDERR_FILENO, bytes, (size_t)n);
}

bool profd_child_has_exited(struct profd_child *p)
{
	if (p->pid != 0 && waitpid(p->pid, NULL, WNOHANG) == p->pid)
		p->pid = 0;
	return p->pid == 0;
}

int profd_child_wait(struct profd_child *p)
{
	int status = 0;

	if (p->pid != 0)
		while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
			;
	p->pid = 0;
	close_fd(&p->log_fd);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

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

const char *spawn_temporary_directory(void)
{
	static const char *const variables[] = {"XDG_RUNTIME_DIR", "TMPDIR"};

	for (size_t i = 0; i < array_size(variables); i++) {
		const char *dir = getenv(variables[i]);

		if (dir != NULL && dir[0] == '/' && access(dir, W_OK) == 0)
			return dir;
	}
	return "/tmp";
}
