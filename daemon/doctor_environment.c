/* What the daemon was started with, and we perhaps not: SENTRY_DSN for one. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/doctor.h"
#include "lib/base/buf.h"
#include "lib/base/procfs.h"

/* ARG_MAX of most systems; a service has some hundred bytes. */
#define ENVIRONMENT_MAX (2u << 20)

/* config_env_fn has no context. */
static struct buf variables;

static char *of_daemon(const char *name)
{
	const size_t n = strlen(name);
	char *at = variables.data, *end = at + variables.len;

	while (at < end) {
		const size_t left = (size_t)(end - at);
		const size_t size = strnlen(at, left);

		/* The last one may have been overwritten, its end too. */
		if (size == left)
			break;
		if (size > n && at[n] == '=' && memcmp(at, name, n) == 0)
			return at + n + 1;
		at += size + 1;
	}
	return NULL;
}

config_env_fn doctor_environment(struct doctor *d)
{
	int fd, r;

	if (d->config != NULL || !d->is_told)
		return getenv;
	buf_init(&variables, ENVIRONMENT_MAX);
	fd = open(procfs_path(d->daemon_pid, "environ").text,
		  O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : buf_read_fd(&variables, fd);
	close_fd(&fd);
	if (r == 0)
		return of_daemon;
	doctor_environment_forget();
	doctor_say(d, FINDING_WARNING, "environment",
		   "the daemon's cannot be read (%s): what follows is by ours",
		   strerror(-r));
	return getenv;
}

void doctor_environment_forget(void)
{
	if (variables.data != NULL)
		explicit_bzero(variables.data, variables.len);
	buf_fini(&variables);
}
