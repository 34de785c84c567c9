#include "daemon/common/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/msg/msg.h"
#include "lib/base/ipc.h"
#include "lib/base/procfs.h"

#ifndef LIBEXECDIR
#define LIBEXECDIR "/usr/local/libexec/sentry-profd"
#endif
#ifndef BINDIR
#define BINDIR "/usr/local/bin"
#endif
#ifndef SBINDIR
#define SBINDIR "/usr/local/sbin"
#endif

#define ENVIRONMENT_MAX 16

/* Proxy variables that libcurl reads. */
const char *const spawn_ship_environment[] = {
	"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
	"ALL_PROXY",  "no_proxy",    "NO_PROXY",    NULL,
};

int spawn_find(const char *name, char ret[PATH_MAX])
{
	static const char *const others[] = {LIBEXECDIR, BINDIR, SBINDIR};
	char self[PATH_MAX];
	int r = procfs_link("/proc/self/exe", self, sizeof(self));
	char *slash;

	if (r < 0)
		return r;
	slash = strrchr(self, '/');
	if (slash == NULL)
		return -ENOENT;
	*slash = '\0';
	r = -ENOENT;
	for (size_t i = 0; i <= array_size(others); i++) {
		const int n = snprintf(ret, PATH_MAX, "%s/%s", i == 0 ? self : others[i - 1], name);

		if (n <= 0 || n >= PATH_MAX)
			continue;
		if (access(ret, X_OK) == 0)
			return 0;
		/* The error of a file that exists and cannot be executed says more than ENOENT. */
		if (r == -ENOENT)
			r = -errno;
	}
	return r;
}

/*
 * Discards signals that the terminal sent to the broker's process group while the child was
 * in it. They are pending, since the broker blocks them; ignoring a signal discards it.
 */
static void drop_pending(void)
{
	static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP};
	struct sigaction action;

	for (size_t i = 0; i < array_size(signals); i++) {
		if (sigaction(signals[i], NULL, &action) < 0 || action.sa_handler == SIG_IGN)
			continue;
		(void)signal(signals[i], SIG_IGN);
		(void)signal(signals[i], SIG_DFL);
	}
}

void spawn_leave_job(void)
{
	sigset_t none;

	(void)setpgid(0, 0);
	drop_pending();
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs between fork and exec: async-signal-safe calls only. */
__attribute__((noreturn)) static void exec_child(const char *path, char *const *argv,
						 char *const *envp, int fd, int log_fd)
{
	int null;

	spawn_leave_job();
	if (log_fd >= 0 && dup2(log_fd, STDERR_FILENO) < 0)
		_exit(SPAWN_FAILED);
	/* All other descriptors are closed first, so that open(2) finds a free one. */
	if (dup2(fd, MSG_FD) < 0 || close_range(MSG_FD + 1, ~0u, 0) < 0)
		_exit(SPAWN_FAILED);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		_exit(SPAWN_FAILED);
	(void)execve(path, argv, envp);
	_exit(SPAWN_FAILED);
}

/*
 * Adds LOG_JOURNAL_VARIABLE to envp, so that the child writes a priority before each log line
 * (daemon/common/log.h): with the device and inode of log_fd, the child's stderr, or, if log_fd is
 * -1, as this process has it. Returns 0 or -errno.
 */
static int add_journal_variable(char **envp, size_t *n, int log_fd)
{
	const char *value = getenv(LOG_JOURNAL_VARIABLE);
	struct stat st;
	int r;

	if (log_fd < 0 && value == NULL)
		return 0;
	if (log_fd < 0)
		r = asprintf(&envp[*n], "%s=%s", LOG_JOURNAL_VARIABLE, value);
	else if (fstat(log_fd, &st) < 0)
		return -errno;
	else
		r = asprintf(&envp[*n], "%s=%llu:%llu", LOG_JOURNAL_VARIABLE,
			     (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	if (r < 0) {
		envp[*n] = NULL;
		return -ENOMEM;
	}
	(*n)++;
	return 0;
}

int spawn_child(const char *name, const char *const *environment, int log_fd, int32_t *ret_pid,
		int *ret_fd)
{
	char path[PATH_MAX], *argv[] = {path, NULL};
	char *envp[ENVIRONMENT_MAX + 1] = {NULL};
	size_t n = 0;
	int pair[2], r;
	pid_t pid;

	r = spawn_find(name, path);
	if (r < 0)
		return r;
	r = ipc_pair(pair);
	if (r < 0)
		return r;
	for (; *environment != NULL; environment++) {
		const char *value = getenv(*environment);

		if (value == NULL || n == ENVIRONMENT_MAX - 1)
			continue;
		if (asprintf(&envp[n], "%s=%s", *environment, value) < 0) {
			envp[n] = NULL;
			r = -ENOMEM;
			goto out;
		}
		n++;
	}
	r = add_journal_variable(envp, &n, log_fd);
	if (r < 0)
		goto out;
	if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0) {
		r = -errno;
		goto out;
	}
	/* dup2() onto the same number would keep CLOEXEC. */
	if (pair[1] == MSG_FD) {
		r = fcntl(pair[1], F_DUPFD_CLOEXEC, MSG_FD + 1);
		if (r < 0) {
			r = -errno;
			goto out;
		}
		close_fd(&pair[1]);
		pair[1] = r;
		r = 0;
	}
	pid = fork();
	if (pid == 0)
		exec_child(path, argv, envp, pair[1], log_fd);
	if (pid < 0) {
		r = -errno;
		goto out;
	}
	*ret_pid = pid;
	*ret_fd = pair[0];
	pair[0] = -1;
out:
	for (size_t i = 0; i < n; i++)
		free(envp[i]);
	close_fd(&pair[0]);
	close_fd(&pair[1]);
	return r;
}
