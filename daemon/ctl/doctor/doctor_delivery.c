/*
 * The configuration, its servers and its sections. The daemon that runs says
 * what it finds (daemon/broker/control/inspect.h); where none runs, or another configuration
 * is given, a sentry-profd is started that does nothing else.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/ctl/doctor/doctor.h"
#include "daemon/ctl/own_profd.h"
#include "lib/base/ipc.h"
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

/* Has a sentry-profd of doctor's own say what it finds. */
static int ask_own(struct doctor *d, struct own_profd *profd)
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
	r = own_profd_start(profd, argv, out[1], NULL, NULL);
	close_fd(&out[1]);
	if (r < 0)
		close_fd(&out[0]);
	else if (repeat_lines(d, out[0]) == 0)
		r = -ENODATA;
	return r;
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
	struct own_profd profd = {.log_fd = -1};
	int r;

	if (d->findings_fd >= 0) {
		take_findings(d);
		return;
	}
	if (!may_read_config(d))
		return;
	r = ask_own(d, &profd);
	if (r < 0) {
		/* What it has logged is said by its findings, unless it has none. */
		own_profd_show_log(&profd);
		doctor_say(d, FINDING_FAULT, "configuration",
			   "sentry-profd --check-config --servers finds "
			   "nothing: %s",
			   strerror(-r));
	}
	own_profd_end(&profd);
}
