/*
 * Looks for the crash reporter of a process: another process that traces it when it crashes. And
 * says what happens at a crash while sentry-profd traces the process (lib/capture/crash.h).
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/ctl/doctor/doctor_checks.h"
#include "daemon/process/process.h"
#include "daemon/process/unix_peer.h"
#include "lib/base/digits.h"
#include "lib/base/procfs.h"
#include "lib/base/small_file.h"
#include "lib/unwind/space/maps.h"

/* Sockets of a reporter that are looked at; crashpad's handler has two. */
#define SOCKETS_MAX 64

/* What is known of the reporter of a process. */
struct reporter {
	int32_t target;
	uint32_t uid;	     /* of the target */
	int diag_fd;	     /* of unix_peer_open(), or its error */
	int32_t pid;	     /* a process with a reporter's name; 0: none */
	bool is_connected;   /* pid has the other end of a socket of the target */
	int error;	     /* why is_connected cannot be known; 0: it is known */
	const char *library; /* a reporter's file that the target has mapped; NULL: none */
};

struct sockets {
	uint32_t inodes[SOCKETS_MAX];
	size_t n;
};

/*
 * Reads the inodes of the sockets of pid, at most SOCKETS_MAX; if wanted is not 0, only this one.
 * Returns 0 or -errno.
 */
static int read_sockets(int32_t pid, uint32_t wanted, struct sockets *ret)
{
	static const char prefix[] = "socket:[";
	DIR *dir = opendir(procfs_path(pid, "fd").text);
	struct dirent *entry;

	ret->n = 0;
	if (dir == NULL)
		return -errno;
	while (ret->n < (wanted != 0 ? 1 : SOCKETS_MAX) && (entry = readdir(dir)) != NULL) {
		char link[64];
		const ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		uint64_t inode;

		if (n < (ssize_t)sizeof(prefix) || memcmp(link, prefix, sizeof(prefix) - 1) != 0)
			continue;
		link[n - 1] = '\0'; /* the bracket */
		if (digits_number(link + sizeof(prefix) - 1, 1, UINT32_MAX, &inode) &&
		    (wanted == 0 || inode == wanted))
			ret->inodes[ret->n++] = (uint32_t)inode;
	}
	(void)closedir(dir);
	return 0;
}

/* Returns 1 if pid has the other end of a socket of the target, 0 if not, or -errno. */
static int look_for_connection(const struct reporter *p, int32_t pid)
{
	struct sockets own, peers;
	int r = p->diag_fd < 0 ? p->diag_fd : read_sockets(pid, 0, &own);

	for (size_t i = 0; r == 0 && i < own.n; i++) {
		uint32_t peer;

		r = unix_peer_find(p->diag_fd, own.inodes[i], &peer);
		if (r == 0 && peer != 0)
			r = read_sockets(p->target, peer, &peers);
		if (r == 0 && peer != 0 && peers.n > 0)
			return 1;
	}
	return r;
}

static bool has_reporter_name(int32_t pid)
{
	/* The kernel keeps 15 bytes of a name. */
	static const char *const names[] = {"crashpad_handle", "chrome_crashpad", "sentry-crash"};
	char comm[PROCESS_COMM_SIZE];

	if (small_file_read(AT_FDCWD, procfs_path(pid, "comm").text, comm, sizeof(comm)) < 0)
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	for (size_t i = 0; i < array_size(names); i++)
		if (strcmp(comm, names[i]) == 0)
			return true;
	return false;
}

/* Sets p->pid to the process that is connected, or else to one that may be. */
static void find_process(struct reporter *p)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc != NULL && !p->is_connected && (entry = readdir(proc)) != NULL) {
		int32_t pid;
		int r;

		if (!digits_pid(entry->d_name, &pid) || pid == p->target ||
		    !has_reporter_name(pid) || process_user(pid) != p->uid)
			continue;
		r = look_for_connection(p, pid);
		if (r == 0)
			continue;
		p->pid = pid;
		p->is_connected = r > 0;
		p->error = r > 0 ? 0 : -r;
	}
	if (proc != NULL)
		(void)closedir(proc);
}

static bool is_reporter_library(const char *path)
{
	static const char *const prefixes[] = {"libcrashpad", "libsentry", "libbreakpad"};
	static const char own[] = "libsentry_profd"; /* reports no crashes */
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	if (strncmp(name, own, sizeof(own) - 1) == 0)
		return false;
	for (size_t i = 0; i < array_size(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

static const char *find_library(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		if (is_reporter_library(maps->v[i].path))
			return maps->v[i].path;
	return NULL;
}

/* Writes the names of the crash signals for which the process has a handler; "": none. */
static int read_handlers(int32_t pid, char *ret, size_t size)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
	char text[PROCFS_STATUS_MAX];
	uint64_t handled;
	size_t n = 0;
	int r = small_file_read(AT_FDCWD, procfs_path(pid, "status").text, text, sizeof(text));

	if (r < 0)
		return r;
	ret[0] = '\0';
	if (procfs_numbers(text, "\nSigCgt:", 16, &handled, 1) != 1)
		return -EINVAL;
	for (size_t i = 0; i < array_size(signals); i++)
		if ((handled >> (signals[i] - 1) & 1) != 0 && n < size)
			n += (size_t)snprintf(ret + n, size - n, "%sSIG%s", n > 0 ? ", " : "",
					      sigabbrev_np(signals[i]));
	return 0;
}

/* Describes the reporter in words that precede "can write its report". */
static void describe(const struct reporter *p, char *ret, size_t size)
{
	char name[PROCESS_NAME_SIZE];

	if (p->pid != 0)
		process_name(p->pid, name);
	if (p->is_connected)
		(void)snprintf(ret, size,
			       "its crash reporter %s (pid %d), which holds the other end of a "
			       "socket of it,",
			       name, p->pid);
	else if (p->library != NULL)
		(void)snprintf(ret, size, "its crash reporter (%s)", p->library);
	else if (p->pid != 0)
		(void)snprintf(ret, size,
			       "a crash reporter, perhaps %s (pid %d; whether the process is "
			       "connected with it cannot be seen: %s),",
			       name, p->pid, strerror(p->error));
	else
		(void)snprintf(ret, size,
			       "a crash reporter (none is seen; one that is linked statically "
			       "cannot be)");
}

static void say(struct doctor *d, const struct reporter *p, const char *handlers)
{
	const bool is_seen = p->is_connected || p->library != NULL;
	char what[1024];

	describe(p, what, sizeof(what));
	if (d->uses_perf)
		doctor_say(d, FINDING_OK, "crash reports",
			   "sampler = perf traces no process, so %s can write its report", what);
	else if (handlers[0] != '\0' && d->stays_on_crash)
		doctor_say(d, is_seen ? FINDING_WARNING : FINDING_OK, "crash reports",
			   "the process has handlers of %s, but with on_crash = stay sentry-profd "
			   "does "
			   "not detach at such a crash, and %s cannot trace the process",
			   handlers, what);
	else if (handlers[0] != '\0')
		doctor_say(d, FINDING_OK, "crash reports",
			   "the process has handlers of %s: at such a crash sentry-profd detaches "
			   "before the handler runs, so %s can write its report",
			   handlers, what);
	else if (is_seen)
		doctor_say(
			d, FINDING_WARNING, "crash reports",
			"the process has no handler of a crash signal, so at a crash sentry-profd "
			"does not detach, and %s cannot trace the process; run sentry-profctl "
			"detach %d before it has to",
			what, d->pid);
	else
		doctor_say(d, FINDING_OK, "crash reports",
			   "the process has no handler of a crash signal: a crash ends it as "
			   "without sentry-profd, with the same core dump");
}

void doctor_reporter(struct doctor *d, const struct maps *maps)
{
	struct reporter p = {
		.target = d->pid,
		.uid = process_user(d->pid),
		.diag_fd = -1,
		.library = find_library(maps),
	};
	char handlers[128];
	int r = read_handlers(d->pid, handlers, sizeof(handlers));

	if (r < 0) {
		doctor_say(d, FINDING_WARNING, "crash reports",
			   "its signal handlers cannot be read: %s", strerror(-r));
		return;
	}
	r = unix_peer_open(&p.diag_fd);
	if (r < 0)
		p.diag_fd = r;
	find_process(&p);
	say(d, &p, handlers);
	if (p.diag_fd >= 0)
		close_fd(&p.diag_fd);
}
