#include "daemon/ctl/common/private_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/common/log.h"
#include "daemon/common/spawn.h"
#include "lib/base/clock.h"

/* How long the new daemon may take to listen: long, for a machine without CPU time. */
#define START_NS (60 * NS_PER_SEC)
#define RETRY_NS (20 * NS_PER_MS)

#define OUTPUT "output"

static int name_paths(struct private_daemon *d)
{
	const int n = snprintf(d->dir, sizeof(d->dir), "%s/sentry-profctl-XXXXXX",
			       common_temporary_directory());
	int r;

	if (n < 0 || (size_t)n >= sizeof(d->dir))
		return -ENAMETOOLONG;
	/* mkdtemp(3) gives it mode 0700. */
	if (mkdtemp(d->dir) == NULL) {
		r = -errno;
		d->dir[0] = '\0';
		return r;
	}
	r = snprintf(d->socket, sizeof(d->socket), "%s/socket", d->dir);
	return r < 0 || (size_t)r >= sizeof(d->socket) ? -ENAMETOOLONG : 0;
}

/*
 * Runs in the child. With profile_lifecycle = trace the daemon profiles while a root span
 * is open; no program connects to this daemon, so it profiles only for a recording.
 */
static bool prepare(const void *ctx)
{
	const struct private_daemon *d = ctx;

	spawn_leave_job();
	return chdir(d->dir) == 0 && unsetenv("SENTRY_DSN") == 0 &&
	       setenv("SENTRY_PROFILE_LIFECYCLE", "trace", 1) == 0;
}

static int start(struct private_daemon *d, int32_t target)
{
	static char name[] = "sentry-profd", pid_option[] = "--pid", socket_option[] = "--socket",
		    output_option[] = "--output", quiet[] = "--quiet", output[] = OUTPUT,
		    deep[] = "--max-frames=4096";
	char pid[16];
	char *argv[] = {name,	       pid_option, pid,	  socket_option, d->socket,
			output_option, output,	   quiet, deep,		 NULL};
	int r = name_paths(d);

	if (r < 0)
		return r;
	(void)snprintf(pid, sizeof(pid), "%d", target);
	return profd_child_start(&d->profd, argv, -1, prepare, d);
}

static int connect_to(struct private_daemon *d, const volatile sig_atomic_t *stop,
		      struct control_client *ret)
{
	const struct timespec retry = {.tv_nsec = RETRY_NS};
	const uint64_t deadline_ns = clock_mono_ns() + START_NS;

	while (!*stop) {
		if (control_client_open(d->socket, true, ret) == 0) {
			ret->is_quiet = false;
			return 0;
		}
		if (profd_child_has_exited(&d->profd))
			return -ECHILD;
		if (clock_mono_ns() > deadline_ns)
			return -ETIMEDOUT;
		(void)nanosleep(&retry, NULL);
	}
	return -EINTR;
}

static int start_and_connect(struct private_daemon *d, int32_t target,
			     const volatile sig_atomic_t *stop, struct control_client *ret)
{
	int r = start(d, target);

	if (r < 0)
		log_error("cannot start sentry-profd for process %d: %s", target, strerror(-r));
	else
		r = connect_to(d, stop, ret);
	if (r == -ECHILD) {
		/* The log of the daemon has the reason. */
		profd_child_show_log(&d->profd);
		log_error("sentry-profd --pid %d exited at its start; its log lines above say why",
			  target);
	} else if (r == -ETIMEDOUT) {
		profd_child_show_log(&d->profd);
		log_error(
			"sentry-profd --pid %d was started 60 s ago and accepts no connection yet; "
			"its log lines above may say why",
			target);
	}
	return r;
}

/* True if no daemon listens at the socket; false if connecting is refused. */
static bool is_no_daemon(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ECONNREFUSED;
}

int private_daemon_find(struct private_daemon *d, const char *socket, int32_t target,
			const volatile sig_atomic_t *stop, struct control_client *ret)
{
	const char *path = control_client_path(socket);
	int r = control_client_open(path, true, ret);

	*d = (struct private_daemon){.profd.log_fd = -1};
	if (r == 0) {
		ret->is_quiet = false;
		return 0;
	}
	if (target != 0 && socket == NULL && is_no_daemon(r))
		return start_and_connect(d, target, stop, ret);
	/* Connects again, for the error message. */
	return control_client_open(path, false, ret);
}

void private_daemon_end(struct private_daemon *d)
{
	static const char *const names[] = {"socket", "socket.lock", OUTPUT};
	char path[PATH_MAX + 16];

	if (d->profd.pid != 0)
		(void)kill(d->profd.pid, SIGTERM);
	(void)profd_child_wait(&d->profd);
	if (d->dir[0] == '\0')
		return;
	for (size_t i = 0; i < array_size(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", d->dir, names[i]);
		(void)remove(path);
	}
	if (rmdir(d->dir) < 0)
		log_warning("cannot remove %s: %s", d->dir, strerror(errno));
	d->dir[0] = '\0';
}

const char *common_temporary_directory(void)
{
	static const char *const variables[] = {"XDG_RUNTIME_DIR", "TMPDIR"};

	for (size_t i = 0; i < array_size(variables); i++) {
		const char *dir = getenv(variables[i]);

		if (dir != NULL && dir[0] == '/' && access(dir, W_OK) == 0)
			return dir;
	}
	return "/tmp";
}
