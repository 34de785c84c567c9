#include "daemon/common/degraded_kind.h"

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

/* Capabilities that have an effect in the initial user namespace only. */
#define ROOTLESS "; a rootless container cannot have it"

const struct degraded_kind_text degraded_kind_texts[DEGRADED_N] = {
	[DEGRADED_VERSION] = {"version", "executables of different versions",
			      "the processes of the named executable are not started again",
			      "install all of one version, and restart sentry-profd", false},
	[DEGRADED_SERVER] = {"server", "a server refuses profiles",
			     "profiles for it are not delivered",
			     "see the answer of the server: the DSN, its key, or a quota", false},
	[DEGRADED_SPOOL] = {"spool", "no spool",
			    "chunks wait in memory, and those that no server has taken at the "
			    "end are lost",
			    "make room on its disk; or give its directory to the account of "
			    "sentry-profd-ship (systemd-tmpfiles --create sentry-profd.conf), "
			    "then restart sentry-profd; see \"spool\" in sentry-profd(8)",
			    false},
	[DEGRADED_SECTION] = {"section", "a section of the configuration cannot be used",
			      "its processes are not profiled, or are profiled by its former "
			      "settings",
			      "correct the section, and reload", false},
	[DEGRADED_SYS_PTRACE] = {"CAP_SYS_PTRACE", "no CAP_SYS_PTRACE",
				 "only processes of root are profiled, and of these only those "
				 "without more capabilities",
				 "a container: --cap-add SYS_PTRACE", false},
	[DEGRADED_READ_SEARCH] = {"CAP_DAC_READ_SEARCH", "no CAP_DAC_READ_SEARCH",
				  "only processes of root are profiled",
				  "a container: --cap-add DAC_READ_SEARCH", false},
	[DEGRADED_SETUID] = {"CAP_SETUID", "no CAP_SETUID",
			     "the processes that parse data of targets and servers stay root, "
			     "without capabilities; without CAP_CHECKPOINT_RESTORE, functions of "
			     "processes of other users have no names",
			     "a container: --cap-add SETUID", true},
	[DEGRADED_SETGID] = {"CAP_SETGID", "no CAP_SETGID",
			     "the processes that parse data of targets and servers stay in "
			     "root's group; without CAP_CHECKPOINT_RESTORE, functions of "
			     "processes of other users have no names",
			     "a container: --cap-add SETGID", true},
	[DEGRADED_CHECKPOINT_RESTORE] = {"CAP_CHECKPOINT_RESTORE", "no CAP_CHECKPOINT_RESTORE",
					 "functions of files that were deleted or replaced, or "
					 "that the process's user may not read, have no names",
					 "a container: --cap-add CHECKPOINT_RESTORE" ROOTLESS,
					 false},
	[DEGRADED_KILL] = {"CAP_KILL", "no CAP_KILL",
			   "a process of sentry-profd that hangs is not ended",
			   "a container: --cap-add KILL", true},
	[DEGRADED_SYS_NICE] = {"CAP_SYS_NICE", "no CAP_SYS_NICE",
			       "samples come late when the processors are busy",
			       "a container: --cap-add SYS_NICE" ROOTLESS, false},
	[DEGRADED_FIFO] = {"SCHED_FIFO", "no SCHED_FIFO",
			   "samples come late when the processors are busy",
			   "give the control group real-time time (cpu.rt_runtime_us), or the "
			   "service RestrictRealtime=no",
			   false},
	[DEGRADED_SCHEDSTAT] = {"schedstat", "no run times of threads (/proc/PID/schedstat)",
				"threads that had to wait for a processor count as running",
				"a kernel with CONFIG_SCHED_INFO", false},
	[DEGRADED_GETFD] = {"pidfd_getfd", "no pidfd_getfd(2)",
			    "calls on sockets that are interrupted by a sample may return less "
			    "than they were asked for, and their timeouts (SO_RCVTIMEO, "
			    "SO_SNDTIMEO) begin anew",
			    "systemd-nspawn: --system-call-filter=pidfd_getfd", true},
	[DEGRADED_CONNECTOR] = {"connector", "no proc connector",
				"new processes are found by reading /proc once a second",
				"it needs the machine's own network and pid namespaces, and "
				"CAP_NET_ADMIN before Linux 6.6",
				false},
	[DEGRADED_CLOCK] = {"clock", "the clock differs from a server's",
			    "profiles have the times of this host, which the server does not "
			    "correct",
			    "set the clock", false},
	[DEGRADED_FILES] = {"files", "files that are not read any more",
			    "functions of these files have no names, and stacks end there",
			    "sentry-profctl reload reads them again", false},
	[DEGRADED_LOG] = {"log", "lines of the log are lost", "the log is not complete",
			  "repair the reader of standard error", false},
};

/* The rules for capabilities: any of the set suffices. */
static const struct {
	enum degraded_kind kind;
	capability_set any_of;
	bool is_initial; /* has an effect in the initial user namespace only */
} needed[] = {
	{DEGRADED_SYS_PTRACE, CAP(SYS_PTRACE), false},
	{DEGRADED_READ_SEARCH, CAP(DAC_READ_SEARCH) | CAP(DAC_OVERRIDE), false},
	{DEGRADED_SETUID, CAP(SETUID), false},
	{DEGRADED_SETGID, CAP(SETGID), false},
	{DEGRADED_CHECKPOINT_RESTORE, CAP(CHECKPOINT_RESTORE), true},
	{DEGRADED_KILL, CAP(KILL), false},
	{DEGRADED_SYS_NICE, CAP(SYS_NICE), true},
};

/* A daemon that cannot change to other users can signal all of its children. */
static bool applies(enum degraded_kind kind, const struct degraded_kind_facts *facts)
{
	return kind != DEGRADED_KILL || (facts->have & CAP(SETUID)) != 0;
}

size_t degraded_kind_find(const struct degraded_kind_facts *facts,
			  enum degraded_kind ret[DEGRADED_N])
{
	size_t n = 0;

	for (size_t i = 0; i < array_size(needed); i++)
		if (applies(needed[i].kind, facts) &&
		    ((facts->have & needed[i].any_of) == 0 ||
		     (needed[i].is_initial && facts->in_user_namespace)))
			ret[n++] = needed[i].kind;
	if (facts->no_schedstat)
		ret[n++] = DEGRADED_SCHEDSTAT;
	if (facts->no_getfd)
		ret[n++] = DEGRADED_GETFD;
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

/*
 * A kernel without CONFIG_SCHED_INFO has no such file, or zeros in it. The third number, of the
 * time slices, is never 0 in a process that runs; the run time of a new process can be.
 */
static bool has_no_schedstat(void)
{
	unsigned long long slices;
	char text[80];

	return small_file_read(AT_FDCWD, "/proc/self/schedstat", text, sizeof(text)) < 0 ||
	       sscanf(text, "%*u %*u %llu", &slices) != 1 || slices == 0;
}

void degraded_kind_facts_read(struct degraded_kind_facts *ret)
{
	*ret = (struct degraded_kind_facts){
		.in_user_namespace = is_in_user_namespace(),
		.no_getfd = getfd_is_refused(),
		.no_schedstat = has_no_schedstat(),
	};
	(void)!privileges_permitted(&ret->have);
}
