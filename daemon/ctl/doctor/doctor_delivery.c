/*
 * The configuration, its servers and its sections. The daemon that runs says
 * what it finds (daemon/broker/control/inspect.h); where none runs, or another configuration
 * is given, a sentry-profd is started that does nothing else.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/ctl/doctor/doctor.h"
#include "daemon/common/spawn.h"
#include "lib/client/protocol.h"

/* Takes fd, which is closed. Returns how many lines there were. */
static size_t repeat_lines(struct doctor *d, int fd)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0, n = 0;
	ssize_t length;

	if (in == NULL) {
		close_fd(&fd);
		return 0;
	}
	while ((length = getline(&line, &size, in)) > 0) {
		line[length - (line[length - 1] == '\n')] = '\0';
		finding_repeat(stdout, &d->worst, line);
		n++;
	}
	free(line);
	(void)fclose(in);
	return n;
}

static void take_findings(struct doctor *d)
{
	struct ipc_message m;
	int fd, r = ipc_recv(d->findings_fd, &m);

	if (r > 0 && (m.size != sizeof(struct protocol_checked) || m.n_fds != 1))
		r = -EPROTO;
	if (r > 0) {
		fd = ipc_take_fd(&m, 0);
		(void)repeat_lines(d, fd);
	} else {
		doctor_say(d, FINDING_FAULT, "daemon", "does not say what it finds: %s",
			   r == 0 ? "it has ended" : strerror(-r));
	}
	ipc_close_fds(&m);
	close_fd(&d->findings_fd);
}

/* In the child, up to execve(2). */
__attribute__((noreturn)) static void become(const struct doctor *d, const char *exe,
					     int32_t parent, int out_fd, int log_fd)
{
	char pid[16];
	static char name[] = "sentry-profd", check[] = "--check-config", servers[] = "--servers",
		    config_option[] = "--config", pid_option[] = "--pid";
	char *argv[8] = {name, check, servers}, config[PATH_MAX];
	size_t n = 3;
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)snprintf(pid, sizeof(pid), "%d", d->pid);
	if (d->config != NULL) {
		(void)snprintf(config, sizeof(config), "%s", d->config);
		argv[n++] = config_option;
		argv[n++] = config;
	}
	if (d->pid != 0) {
		argv[n++] = pid_option;
		argv[n++] = pid;
	}
	if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0 || getppid() != parent ||
	    dup2(null, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0 ||
	    dup2(log_fd, STDERR_FILENO) < 0)
		_exit(SPAWN_FAILED);
	(void)execv(exe, argv);
	_exit(SPAWN_FAILED);
}

/* What it has logged is said by its findings, unless it has none. */
static void show_log(int log_fd)
{
	char bytes[4096];
	ssize_t n;

	if (lseek(log_fd, 0, SEEK_SET) < 0)
		return;
	while ((n = read(log_fd, bytes, sizeof(bytes))) > 0)
		(void)!write_all(STDERR_FILENO, bytes, (size_t)n);
}

static int ask_own(struct doctor *d, int *ret_log_fd)
{
	const int32_t parent = getpid();
	int out[2] = {-1, -1}, r;
	char exe[PATH_MAX];
	pid_t pid = -1;
	size_t n = 0;

	(void)fflush(stdout);
	r = spawn_find("sentry-profd", exe);
	if (r == 0) {
		*ret_log_fd = memfd_create("sentry-profd", MFD_CLOEXEC);
		if (*ret_log_fd < 0 || pipe2(out, O_CLOEXEC) < 0)
			r = -errno;
	}
	if (r == 0) {
		pid = fork();
		if (pid == 0)
			become(d, exe, parent, out[1], *ret_log_fd);
		r = pid < 0 ? -errno : 0;
	}
	close_fd(&out[1]);
	if (r < 0) {
		close_fd(&out[0]);
		return r;
	}
	n = repeat_lines(d, out[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return n > 0 ? 0 : -ENODATA;
}

/* Whose rights are too small for the file learns no more by starting it. */
static bool may_read_config(struct doctor *d)
{
	if (d->config != NULL || access(CONFIG_PATH_DEFAULT, R_OK) == 0 || errno != EACCES)
		return true;
	doctor_say(d, FINDING_WARNING, "configuration",
		   CONFIG_PATH_DEFAULT ": %s; run this as root", strerror(EACCES));
	return false;
}

void doctor_delivery(struct doctor *d)
{
	int log_fd = -1, r;

	if (d->findings_fd >= 0) {
		take_findings(d);
		return;
	}
	if (!may_read_config(d))
		return;
	r = ask_own(d, &log_fd);
	if (r < 0) {
		show_log(log_fd);
		doctor_say(d, FINDING_FAULT, "configuration",
			   "sentry-profd --check-config --servers finds "
			   "nothing: %s",
			   strerror(-r));
	}
	close_fd(&log_fd);
}
