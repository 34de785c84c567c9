/*
 * The facts about a process by which a [target] section of the configuration matches it
 * (daemon/config/match.h), and parsers for the files that contain these facts. The broker reads the
 * files when it discovers processes (daemon/broker/discovery/).
 */
#ifndef DAEMON_PROCESS_PROCESS_FACTS_H
#define DAEMON_PROCESS_PROCESS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The facts of one process. A text is NULL if it has not been read: discovery first reads the facts
 * that cost least, and the others only if these do not decide. A text is "" if the process has no
 * such fact; a kernel thread has no exe, for example. The caller owns all texts.
 */
struct process_facts {
	int32_t pid;
	uint32_t uid;	     /* effective */
	const char *comm;    /* of the leader */
	const char *exe;     /* the text of the link /proc/PID/exe; matching ignores " (deleted)" */
	const char *cmdline; /* each argument with its NUL */
	size_t cmdline_size;
	const char *cgroup;    /* by process_facts_cgroup() */
	const char *container; /* by process_facts_container() */
	/*
	 * /proc/PID/environ: each variable with its NUL. It can contain secrets, so it is never
	 * logged, and is freed after the comparison.
	 */
	const char *environ;
	size_t environ_size;
	/* The pid in the pid_file of the section; 0: there is none; -1: not read yet. */
	int32_t pid_file_pid;
};

/* Room for the id of a container and a NUL. A container of LXC with a longer name has the id "". */
#define PROCESS_FACTS_CONTAINER_SIZE 128
#define PROCESS_FACTS_LXC	     "lxc:"
/*
 * Writes the id of the innermost container to which the path of a cgroup belongs; "" if there is
 * none. These components of the path name a container:
 * - Docker, Podman, containerd, CRI-O, Kubernetes: a component such as docker-ID.scope. The id is
 *   64 hex digits, with no letter or digit directly before or behind them. The component of a
 *   monitor process (libpod-conmon-ID.scope) does not count.
 * - Amazon ECS on Fargate: 32 hex digits, "-", and a decimal number; all of it is the id.
 * - Garden (Cloud Foundry): groups of 8, 4, 4, 4, and 4 or 12 hex digits, with "-" in between; all
 *   of it is the id.
 * - LXC 4 or newer, LXD, Incus: lxc.payload.NAME; the id is "lxc:NAME".
 */
void process_facts_container(const char *cgroup, char ret[PROCESS_FACTS_CONTAINER_SIZE]);

/*
 * Finds the cgroup of a process in text, the n bytes of /proc/PID/cgroup, and writes its path to
 * ret, of size bytes. Uses systemd's own hierarchy (version 1) if there is one whose path fits,
 * else the unified hierarchy (version 2). Returns false if there is neither, or if its path does
 * not fit.
 */
bool process_facts_cgroup(const char *text, size_t n, char *ret, size_t size);
/*
 * As process_facts_cgroup(), but uses the hierarchy whose list of controllers in the text is equal
 * to controllers, such as "cpu,cpuacct"; "": the unified hierarchy. Returns false if there is none.
 */
bool process_facts_cgroup_in_hierarchy(const char *text, size_t n, const char *controllers,
				       char *ret, size_t size);

/*
 * Finds the first variable in f->environ whose name is the n bytes at name. Returns false if there
 * is none, or f->environ is NULL; else sets *ret to its value, *ret_n bytes of f->environ without a
 * NUL.
 */
bool process_facts_variable(const struct process_facts *f, const char *name, size_t n,
			    const char **ret, size_t *ret_n);
/*
 * Returns true if the process has SENTRY_PROFILER=off in its environment: no section of the
 * configuration may profile it. Returns false if f->environ is NULL.
 */
bool process_facts_decline(const struct process_facts *f);

/*
 * Returns the pid in the text of a pid file: a number at the start of the first line, after blanks
 * if there are any. Returns 0 if there is no such number.
 */
int32_t process_facts_pid_file(const char *text, size_t n);

#endif
