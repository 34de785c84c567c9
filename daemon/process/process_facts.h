/*
 * The facts of a process that the rules of a [target] section are compared with
 * (daemon/config/match.h), and parsers of the files that contain these facts. The broker's
 * discovery (daemon/broker/discovery/) reads the files.
 */
#ifndef DAEMON_PROCESS_PROCESS_FACTS_H
#define DAEMON_PROCESS_PROCESS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The facts of one process. A text is NULL if it is not known yet: discovery begins with the
 * facts that cost least, and reads more if these do not decide. A text is "" if the process
 * has no such fact, as a kernel thread has no exe.
 */
struct process_facts {
	int32_t pid;
	uint32_t uid;	     /* effective */
	const char *comm;    /* of its main thread */
	const char *exe;     /* the link's text; matching ignores " (deleted)" */
	const char *cmdline; /* each argument with its NUL */
	size_t cmdline_size;
	const char *cgroup;    /* by process_facts_cgroup() */
	const char *container; /* by process_facts_container() */
	/*
	 * /proc/PID/environ: each variable with its NUL. Secrets: never logged, nor kept longer
	 * than the comparison takes.
	 */
	const char *environ;
	size_t environ_size;
	/* The pid in the section's pid_file; 0: none; -1: not known yet. */
	int32_t pid_file_pid;
};

/* A container's id and a NUL. A longer name of LXC is no id. */
#define PROCESS_FACTS_CONTAINER_SIZE 128
#define PROCESS_FACTS_LXC	     "lxc:"
/*
 * Writes the id of the innermost container that a cgroup's path belongs to; "" if there is none.
 * Which component of the path is one:
 * - Docker, Podman, containerd, CRI-O, Kubernetes: one with 64 hex digits that are not part of a
 *   longer word, unless it is of a monitor (libpod-conmon-ID.scope): these digits.
 * - Amazon ECS on Fargate: 32 hex digits, "-", and a decimal number.
 * - Garden (Cloud Foundry): groups of 8, 4, 4, 4, and 4 or 12 hex digits, with "-" in between.
 * - LXC 4 or newer, LXD, Incus: lxc.payload.NAME; the id is "lxc:NAME".
 */
void process_facts_container(const char *cgroup, char ret[PROCESS_FACTS_CONTAINER_SIZE]);

/*
 * Finds a process's path in the text of its /proc/PID/cgroup: in systemd's own hierarchy if
 * there is one, or else in the unified hierarchy. Returns false if there is neither, or if
 * the path does not fit in size bytes.
 */
bool process_facts_cgroup(const char *text, size_t n, char *ret, size_t size);
/* As process_facts_cgroup(), in the hierarchy of these controllers; "": the unified hierarchy. */
bool process_facts_cgroup_in_hierarchy(const char *text, size_t n, const char *controllers,
				       char *ret, size_t size);

/*
 * Finds the first variable of this name, of n bytes, in a process's environment. Returns false if
 * there is none, else sets *ret to its value of *ret_n bytes, which has no NUL within.
 */
bool process_facts_variable(const struct process_facts *f, const char *name, size_t n,
			    const char **ret, size_t *ret_n);
/*
 * Returns true if the process has SENTRY_PROFILER=off in its environment: no section of the
 * configuration may profile it.
 */
bool process_facts_decline(const struct process_facts *f);

/* Returns the pid in a pid file's text: its first line, with blanks around it. 0: not a pid. */
int32_t process_facts_pid_file(const char *text, size_t n);

#endif
