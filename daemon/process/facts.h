/*
 * What the rules of a [target] section are compared with: what is known of a
 * process, and how it is found in the texts of /proc.
 */
#ifndef DAEMON_PROCESS_FACTS_H
#define DAEMON_PROCESS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A process. What is NULL is not known yet: discovery may begin with what
 * costs least and read more when that decides nothing. What there is none of
 * is "" (a kernel thread's exe, a container where there is none).
 */
struct process_facts {
	int32_t pid;
	uint32_t uid;	     /* effective */
	const char *comm;    /* of its main thread */
	const char *exe;     /* the link's text; " (deleted)" is passed over */
	const char *cmdline; /* as in /proc, each argument with its NUL */
	size_t cmdline_size;
	const char *cgroup;    /* facts_cgroup's */
	const char *container; /* facts_container's, or "" */
	/* What the section's pid_file says; 0: nothing; -1: not known yet. */
	int32_t pid_file_pid;
};

/* A container's id: 64 hex digits and a NUL. */
#define FACTS_CONTAINER_SIZE 65
/*
 * The id of the container that a cgroup's path belongs to, as Docker, Podman,
 * containerd, CRI-O and Kubernetes write it: the last 64 hex digits that are
 * no part of a longer word. "" if there is none.
 */
void facts_container(const char *cgroup, char ret[FACTS_CONTAINER_SIZE]);

/*
 * The path of the process in /proc/PID/cgroup's text: of systemd's own
 * hierarchy where there is one, else of the unified one. False if it does not
 * fit or is not there.
 */
bool facts_cgroup(const char *text, size_t n, char *ret, size_t size);
/* That in the hierarchy of these controllers; "": the unified one. */
bool facts_hierarchy(const char *text, size_t n, const char *controllers, char *ret, size_t size);

/* The number in a pid file's text; 0 if it is none. */
int32_t facts_pid_file(const char *text, size_t n);

#endif
