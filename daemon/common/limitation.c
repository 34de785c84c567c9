#include "daemon/common/limitation.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/small_file.h"
#include "lib/base/util.h"

#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

#define CAP(name) CAPABILITY(CAP_##name)

enum when {
	ALWAYS,
	WITH_OTHER_USERS, /* only if the daemon can change to other users */
};

static const struct {
	capability_set any_of; /* one of these suffices */
	enum when when;
	bool initial; /* has an effect in the initial user namespace only */
	const char *name, *effect, *remedy;
	bool breaks_promise;
} table[] = {
	{CAP(SYS_PTRACE), ALWAYS, false, "CAP_SYS_PTRACE",
	 "only processes of root are profiled, and of these only those without "
	 "more capabilities",
	 "a container: --cap-add SYS_PTRACE", false},
	{CAP(DAC_READ_SEARCH) | CAP(DAC_OVERRIDE), ALWAYS, false, "CAP_DAC_READ_SEARCH",
	 "only processes of root are profiled", "a container: --cap-add DAC_READ_SEARCH", false},
	{CAP(SETUID), ALWAYS, false, "CAP_SETUID",
	 "the processes that parse data of targets and servers stay root, without capabilities; "
	 "without CAP_CHECKPOINT_RESTORE, functions of processes of other users have no names",
	 "a container: --cap-add SETUID", true},
	{CAP(SETGID), ALWAYS, false, "CAP_SETGID",
	 "the processes that parse data of targets and servers stay in root's group; without "
	 "CAP_CHECKPOINT_RESTORE, functions of processes of other users have no names",
	 "a container: --cap-add SETGID", true},
	{CAP(CHECKPOINT_RESTORE), ALWAYS, true, "CAP_CHECKPOINT_RESTORE",
	 "functions of files that were deleted or replaced, or that the "
	 "process's user may not read, have no names",
	 "a container: --cap-add CHECKPOINT_RESTORE", false},
	{CAP(KILL), WITH_OTHER_USERS, false, "CAP_KILL",
	 "a process of sentry-profd that hangs is not ended", "a container: --cap-add KILL", true},
	{CAP(SYS_NICE), ALWAYS, true, "CAP_SYS_NICE",
	 "samples come late when the processors are busy", "a container: --cap-add SYS_NICE",
	 false},
};

static const struct limitation no_getfd = {
	"pidfd_getfd(2)",
	"calls on sockets that are interrupted by a sample may return less than they were asked "
	"for, and their timeouts (SO_RCVTIMEO, SO_SNDTIMEO) begin anew",
	"systemd-nspawn: --system-call-filter=pidfd_getfd",
	true,
};

static const struct limitation no_connector = {
	"proc connector",
	"new processes are found by reading /proc once a second",
	"it takes the machine's own network and pid namespaces, and "
	"CAP_NET_ADMIN before Linux 6.6",
	false,
};

static const char initial_namespace_only[] =
	"a user namespace, as of a rootless container, cannot have it";

_Static_assert(array_size(table) + 2 == LIMITATIONS_MAX, "the room for all");

static bool applies(enum when when, const struct limitation_facts *facts)
{
	switch (when) {
	case ALWAYS:
		return true;
	case WITH_OTHER_USERS:
		return (facts->have & CAP(SETUID)) != 0;
	}
	return true;
}

size_t limitation_find(const struct limitation_facts *facts, struct limitation ret[LIMITATIONS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < array_size(table); i++) {
		const bool is_impossible = table[i].initial && facts->in_user_namespace;

		if (!applies(table[i].when, facts) ||
		    (!is_impossible && (facts->have & table[i].any_of) != 0))
			continue;
		ret[n++] = (struct limitation){table[i].name, table[i].effect,
					       is_impossible ? initial_namespace_only
							     : table[i].remedy,
					       table[i].breaks_promise};
	}
	if (facts->no_getfd)
		ret[n++] = no_getfd;
	if (facts->no_connector)
		ret[n++] = no_connector;
	return n;
}

/* The initial user namespace maps all ids to themselves (user_namespaces(7)). */
static bool is_in_user_namespace(void)
{
	unsigned long first, outside, n;
	char map[256];

	/* The file is missing if the kernel has no user namespaces. */
	return small_file_read(AT_FDCWD, "/proc/self/uid_map", map, sizeof(map)) == 0 &&
	       (sscanf(map, "%lu %lu %lu", &first, &outside, &n) != 3 || first != 0 ||
		outside != 0 || n != UINT32_MAX);
}

/* A process may copy its own descriptors, unless a seccomp filter refuses the call. */
static bool getfd_is_refused(void)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int copy = fd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, fd, fd, 0);
	const bool refused = fd >= 0 && copy < 0;

	close_fd(&copy);
	close_fd(&fd);
	return refused;
}

void limitation_facts_read(struct limitation_facts *ret)
{
	*ret = (struct limitation_facts){
		.in_user_namespace = is_in_user_namespace(),
		.no_getfd = getfd_is_refused(),
	};
	(void)!privileges_permitted(&ret->have);
}
