/*
 * Reads the state of a process from /proc/PID/stat and status: whether it can be profiled, its
 * user, its name and its tracer. Used before capture attaches to the process, and for log lines.
 */
#ifndef DAEMON_PROCESS_PROCESS_H
#define DAEMON_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/ids.h"
#include "lib/base/util.h"

/* The kernel's limit for the name of a program's thread, with the NUL (TASK_COMM_LEN). */
#define PROCESS_COMM_SIZE 16

struct process {
	int32_t pid;
	int32_t parent;
	char comm[PROCESS_COMM_SIZE];
	int pidfd;		/* stays with this process if the pid is reused; -1: none */
	uint32_t uid;		/* effective */
	uint64_t start_ticks;	/* clock ticks since boot; with the pid, the process's identity */
	int32_t tracer;		/* the pid of the tracer; 0: none */
	bool leader_has_exited; /* other threads go on; exe and cmdline in /proc are empty */
};

enum process_fault {
	PROCESS_OK,
	PROCESS_GONE, /* there is no such process */
	PROCESS_KERNEL_THREAD,
	PROCESS_ZOMBIE,
	PROCESS_THREAD,	    /* the pid is a tid, not a leader's; ret->pid is its process */
	PROCESS_TRACED,	    /* ret->tracer traces the process */
	PROCESS_UNREADABLE, /* /proc/PID/status lacks a line, or pidfd_open(2) failed */
	PROCESS_SHORTAGE,   /* of descriptors or memory: try again later */
};

/*
 * Returns a text that continues "process N", such as "is a kernel thread ...". Returns NULL for
 * PROCESS_OK, PROCESS_TRACED and PROCESS_THREAD: the texts for the last two need another pid.
 */
const char *process_fault_text(enum process_fault fault);

/*
 * Reads the state of pid. With PROCESS_OK and PROCESS_TRACED all members of *ret are set; with
 * other faults ret->pidfd is -1, and only ret->pid is valid. In all cases the caller calls
 * close_fd(&ret->pidfd) later, which accepts -1. To keep the descriptor, the caller first takes it
 * by process_take_pidfd().
 */
enum process_fault process_look(int32_t pid, struct process *ret);

/* Returns process->pidfd, which the caller owns from now on, and sets the member to -1. */
static inline int process_take_pidfd(struct process *process)
{
	const int pidfd = process->pidfd;

	process->pidfd = -1;
	return pidfd;
}

/*
 * The identity of a process and of the program that it runs. If two readings for one pid differ in
 * start_ticks, the pid was reused. If they differ in start_stack, the process has executed a
 * program.
 */
struct process_identity {
	uint64_t start_ticks; /* clock ticks since boot */
	/*
	 * The address of the program's stack, which is random: an exec changes it with near
	 * certainty. 0: this process may not read it.
	 */
	uint64_t start_stack;
	/* A hash of start_ticks, start_stack and the name (comm), which a program can change. */
	uint64_t program_hash;
};

/*
 * Returns the uid that owns the files in /proc/PID: the effective uid of the process, or 0 (root)
 * if the process is not dumpable. A process is not dumpable, for example, after a change of its
 * credentials, or if it runs a file that its user may not read. Returns UINT32_MAX if the process
 * has ended. This uid is only one part of a struct owner (owner.h): its member files_uid.
 */
uint32_t process_owner(int32_t pid);

/* Reads the identity of pid. Returns false if the process is gone, or is a kernel thread. */
bool process_identity(int32_t pid, struct process_identity *ret);

/* Returns the pid of the process that traces thread pid; 0: there is none, or pid has ended. */
int32_t process_tracer(int32_t pid);

/* Returns the effective uid of pid; UINT32_MAX if pid has ended. */
uint32_t process_user(int32_t pid);

/* Reads the user and group ids of pid. Returns 0, or -ESRCH if they cannot be read. */
must_check int process_ids(int32_t pid, struct ids *ret);

/*
 * Returns true if the real, effective and saved uid of pid are each 0 or uid: a caller that trusts
 * user uid trusts root, too. Returns false if the process has the id of a third user, or has ended.
 */
bool process_is_of(int32_t pid, uint32_t uid);

/* Returns the current time as a start time of processes: in clock ticks since boot. */
uint64_t process_ticks_now(void);

/*
 * Converts a start time in clock ticks since boot to CLOCK_MONOTONIC, in ns. The result is at most
 * a clock tick (10 ms) too early. If the machine has slept since the start, the result is too early
 * by that sleep, too, because CLOCK_MONOTONIC stands still meanwhile. The result is never below 0.
 */
uint64_t process_born_ns(uint64_t start_ticks);

/* Returns true if the process of pidfd has not ended. */
bool process_is_alive(int pidfd);

/*
 * Writes the name (comm) of pid for a message; "?" if pid has ended. The program chooses its name,
 * which can have any bytes. Names of kernel threads can be longer than PROCESS_COMM_SIZE.
 */
#define PROCESS_NAME_SIZE 65
void process_name(int32_t pid, char ret[PROCESS_NAME_SIZE]);

#endif
