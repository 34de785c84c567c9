/*
 * What the broker may know of a process before it is attached: the kernel's
 * words in /proc/PID/stat and status, read with fixed bounds.
 *
 * The pidfd of a struct process has one owner, which is the function that
 * called process_look(): it closes process.pidfd in one place, whatever
 * happened. A function that keeps the descriptor takes it out of the struct by
 * process_take_pidfd(), so that this close finds -1.
 */
#ifndef DAEMON_PROCESS_PROCESS_H
#define DAEMON_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

/* TASK_COMM_LEN of the kernel; it gives its own threads longer names. */
#define PROCESS_COMM_SIZE 16

struct process {
	int32_t pid;
	int32_t parent;
	char comm[PROCESS_COMM_SIZE];
	int pidfd;	      /* pins the identity; -1: none, or taken out */
	uint32_t uid;	      /* effective */
	uint64_t start_ticks; /* after the boot; with the pid its identity */
	int32_t tracer;	      /* 0: none */
};

enum process_fault {
	PROCESS_OK,
	PROCESS_GONE,
	PROCESS_KERNEL_THREAD,
	PROCESS_ZOMBIE,
	PROCESS_THREAD, /* a thread's id; ret->pid is its process */
	PROCESS_TRACED, /* ret->tracer */
	PROCESS_UNREADABLE,
	PROCESS_SHORTAGE, /* descriptors or memory are short: look again later */
};

/*
 * What is wrong, as words that follow "process N": "is a kernel thread ...".
 * NULL of PROCESS_OK, _TRACED and _THREAD, to which a pid belongs.
 */
const char *process_fault_text(enum process_fault fault);

/* Looks at pid. With PROCESS_OK or _TRACED *ret has a pidfd, else -1. */
enum process_fault process_look(int32_t pid, struct process *ret);

/* The pidfd is the caller's now, and no longer that of process's owner. */
static inline int process_take_pidfd(struct process *process)
{
	const int pidfd = process->pidfd;

	process->pidfd = -1;
	return pidfd;
}

/*
 * The least that tells whether a pid stands for the same process as before, and
 * runs the same program: one read.
 */
struct process_identity {
	uint64_t start_ticks;
	uint64_t mark; /* another one after an exec, as good as always */
};
/* False: it is gone, or the kernel's. */
bool process_identity(int32_t pid, struct process_identity *ret);

/* The process that traces it, by one read; 0: none, or it has ended. */
int32_t process_tracer(int32_t pid);

/* Its effective user, by one call that opens nothing; UINT32_MAX: it is gone.
 */
uint32_t process_user(int32_t pid);

/* Its effective user and group. Returns 0 or -errno; -ESRCH: it is gone. */
must_check int process_ids(int32_t pid, uint32_t *ret_uid, uint32_t *ret_gid);

/* True while the process behind pidfd has not ended. */
bool process_is_alive(int pidfd);

/* Its name (comm) for a message; "?" if it is gone. Bytes the target chose. */
#define PROCESS_NAME_SIZE 65
void process_name(int32_t pid, char ret[PROCESS_NAME_SIZE]);

#endif
