/*
 * Is a process one of a [target] section? Pure: what is known of the process
 * comes as an argument, read by whoever has the rights, with bounds of its own.
 * All of it was chosen by a stranger, and is compared, nothing else.
 *
 * Patterns are those of lib/base/glob.h; in exe a slash ends a star.
 */
#ifndef DAEMON_MATCH_H
#define DAEMON_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config.h"

/*
 * A process. What is NULL is not known yet: discovery may begin with what
 * costs least and read more when that decides nothing. What there is none of
 * is "" (a kernel thread's exe, a container where there is none).
 */
struct match_facts {
	int32_t pid;
	uint32_t uid;	     /* effective */
	const char *comm;    /* of its main thread */
	const char *exe;     /* the link's text; " (deleted)" is passed over */
	const char *cmdline; /* as in /proc, each argument with its NUL */
	size_t cmdline_size;
	const char *cgroup;    /* match_cgroup's */
	const char *container; /* match_container's, or "" */
	/* What the section's pid_file says; 0: nothing; -1: not known yet. */
	int32_t pid_file_pid;
};

enum match_result {
	MATCH_NO,
	MATCH_YES,
	MATCH_UNKNOWN, /* all that is known fits: match_wants says what lacks */
};
enum match_result match_process(const struct target_config *t,
				const struct match_facts *f);

/*
 * Of one that match_process refuses: would it be one if it had another command
 * line or control group? These change without a word of the kernel's.
 */
bool match_may_become(const struct target_config *t,
		      const struct match_facts *f);

/* What match_process needs beside pid, uid and comm for this section. */
struct match_wants {
	bool exe, cmdline, cgroup, container, pid_file;
};
void match_wants(const struct target_config *t, struct match_wants *ret);

/*
 * True if the section cannot match a process whose link /proc/PID/exe says
 * this, whatever else is found out about it.
 */
bool match_exe_excludes(const struct target_config *t, const char *exe);

/* Has it any rule? One without would be all processes. */
bool match_has_rules(const struct target_config *t);

/* A container's id: 64 hex digits and a NUL. */
#define MATCH_CONTAINER_SIZE 65
/*
 * The id of the container that a cgroup's path belongs to, as Docker, Podman,
 * containerd, CRI-O and Kubernetes write it: the last 64 hex digits that are
 * no part of a longer word. "" if there is none.
 */
void match_container(const char *cgroup, char ret[MATCH_CONTAINER_SIZE]);

/*
 * The path of the process in /proc/PID/cgroup's text: of systemd's own
 * hierarchy where there is one, else of the unified one. False if it does not
 * fit or is not there.
 */
bool match_cgroup(const char *text, size_t n, char *ret, size_t size);
/* That in the hierarchy of these controllers; "": the unified one. */
bool match_hierarchy(const char *text, size_t n, const char *controllers,
		     char *ret, size_t size);

/* The number in a pid file's text; 0 if it is none. */
int32_t match_pid_file(const char *text, size_t n);

#endif
