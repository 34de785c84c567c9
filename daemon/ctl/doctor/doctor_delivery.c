/*
 * Findings about the configuration, its sections and its servers. The running daemon makes
 * them (daemon/broker/control/inspect.h). If none runs, or --config names another file, a
 * sentry-profd is started only for this check.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/ctl/common/profd_child.h"
#include "daemon/ctl/doctor/doctor_checks.h"
#include "lib/base/ipc.h"
#include "lib/client/protocol.h"

/* Prints the findings that fd has, one a line. Closes fd. Returns how many there were. */
static size_t print_findings(struct doctor *d, int fd)
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

static void receive_findings(struct doctor *d)
{
	struct ipc_message m;
	int fd, r = ipc_recv(d->findings_fd, &m);

	if (r > 0 && (m.size != sizeof(struct protocol_checked) || m.n_fds != 1))
		r = -EPROTO;
	if (r > 0) {
		fd = ipc_take_fd(&m, 0);
		(void)print_findings(d, fd);
	} else {
		doctor_say(d, FINDING_FAULT, "daemon", "has sent no findings: %s",
			   r == 0 ? "it has exited" : strerror(-r));
	}
	ipc_close_fds(&m);
	close_fd(&d->findings_fd);
}

/* Starts a sentry-profd that checks the configuration, and prints its findings. */
static int run_check(struct doctor *d, struct profd_child *profd)
{
	static char name[] = "sentry-profd", check[] = "--check-config", servers[] = "--servers",
		    config_option[] = "--config", pid_option[] = "--pid";
	char *argv[8] = {name, check, servers}, config[PATH_MAX], pid[16];
	size_t n = 3;
	int out[2], r;

	if (d->config != NULL) {
		(void)snprintf(config, sizeof(config), "%s", d->config);
		argv[n++] = config_option;
		argv[n++] = config;
	}
	if (d->pid != 0) {
		(void)snprintf(pid, sizeof(pid), "%d", d->pid);
		argv[n++] = pid_option;
		argv[n++] = pid;
	}
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	r = profd_child_start(profd, argv, out[1], NULL, NULL);
	close_fd(&out[1]);
	if (r < 0)
		close_fd(&out[0]);
	else if (print_findings(d, out[0]) == 0)
		r = -ENODATA;
	return r;
}

/* False after a finding: sentry-profd could not read the file either. */
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
	struct profd_child profd = {.log_fd = -1};
	int r, signal;

	if (d->findings_fd >= 0) {
		receive_findings(d);
		return;
	}
	if (!may_read_config(d))
		return;
	r = run_check(d, &profd);
	if (r < 0) {
		/* The log repeats the findings, so it is printed only if there are none. */
		profd_child_show_log(&profd);
		doctor_say(d, FINDING_FAULT, "configuration",
			   "sentry-profd --check-config --servers printed "
			   "nothing: %s",
			   strerror(-r));
	}
	signal = profd_child_wait(&profd);
	if (signal != 0)
		doctor_say(d, FINDING_FAULT, "configuration",
			   "sentry-profd --check-config --servers was killed by signal %d (%s): "
			   "findings may be missing",
			   signal, strsignal(signal));
}
