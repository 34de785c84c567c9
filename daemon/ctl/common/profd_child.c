#include "daemon/ctl/common/profd_child.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/common/spawn.h"
#include "lib/base/util.h"

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
