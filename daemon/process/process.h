/*
 * Reads the state of a process from /proc/PID/stat and status: whether it can be profiled, its
 * user, its name and its tracer. Used before capture attaches to the process, and for messages.
 *
 * The pidfd of a struct process has one owner: the function that called process_look() closes
 * process.pidfd in one place, whatever happened. A function that keeps the descriptor takes
 * it out of the struct by process_take_pidfd(), so that this close finds -1.
 */
#ifndef DAEMON_PROCESS_PROCESS_H
#define DAEMON_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/ids.h"
#include "lib/base/util.h"

/* TASK_COMM_LEN of the kernel. Kernel threads can have longer names. */
#define PROCESS_COMM_SIZE 16

struct process {
	int32_t pid;
	int32_t parent;
	char comm[PROCESS_COMM_SIZE];
	int pidfd;	      /* keeps the pid from being reused; -1: none, or taken out */
	uint32_t uid;	      /* effective */
	uint64_t start_ticks; /* since boot; with the pid, the identity of the process */
	int32_t tracer;	      /* 0: none */
};

enum process_fault {
	PROCESS_OK,
	PROCESS_GONE,
	PROCESS_KERNEL_THREAD,
	PROCESS_ZOMBIE,
	PROCESS_THREAD, /* the pid is a thread; ret->pid is its process */
	PROCESS_TRACED, /* by ret->tracer */
	PROCESS_UNREADABLE,
	PROCESS_SHORTAGE, /* of descriptors or memory: try again later */
};

/*
 * Describes the fault in words that follow "process N": "is a kernel thread ...". Returns NULL
 * for PROCESS_OK, and for PROCESS_TRACED and PROCESS_THREAD, whose text needs another pid.
 */
const char *process_fault_text(enum process_fault fault);

/* Reads the state of pid. *ret has a pidfd only with PROCESS_OK and PROCESS_TRACED. */
enum process_fault process_look(int32_t pid, struct process *ret);

/* Returns the pidfd, which the caller owns from now on, and sets it to -1. */
static inline int process_take_pidfd(struct process *process)
{
	const int pidfd = process->pidfd;

	process->pidfd = -1;
	return pidfd;
}

/*
 * The identity of a process and of the program that it runs, by one read. Two identities of
 * one pid are equal if it is the same process and has not executed another program.
 */
struct process_identity {
	uint64_t start_ticks;
	/*
	 * The address of the program's stack, which is random: an exec changes it with near
	 * certainty. 0: the daemon may not read it.
	 */
	uint64_t start_stack;
	uint64_t program_hash; /* of these two and the name, which the program can change */
};

/*
 * Returns the uid of the owner of the files in /proc/PID, which is root if the process is not
 * dumpable: it has changed its credentials, or runs a file that its user may not read. Returns
 * UINT32_MAX if the process has ended.
 */
uint32_t process_owner(int32_t pid);

/* Reads the identity of pid. Returns false if the process is gone, or is a kernel thread. */
bool process_identity(int32_t pid, struct process_identity *ret);

/* Returns the process that traces pid, by one read; 0: none does, or pid has ended. */
int32_t process_tracer(int32_t pid);

/* Returns the effective user of pid, by one stat(2); UINT32_MAX if pid is gone. */
uint32_t process_user(int32_t pid);

/* Reads the user and group ids of pid. Returns 0, or -ESRCH if pid is gone. */
must_check int process_ids(int32_t pid, struct ids *ret);

/*
 * Returns true if the real, effective and saved uid of pid are each 0 or uid. Not so for a program
 * that another user has started, a set-user-ID one included, unless it has given up that user's id.
 */
bool process_is_of(int32_t pid, uint32_t uid);

/* Returns the start time that a process has which starts now, in clock ticks since the boot. */
uint64_t process_ticks_now(void);

/*
 * Converts a start time in clock ticks since the boot to CLOCK_MONOTONIC, at most a clock tick
 * (10 ms) too early. CLOCK_MONOTONIC stands still while the machine sleeps; a process that is
 * older than its zero gets 0.
 */
uint64_t process_born_ns(uint64_t start_ticks);

/* Returns true if the process of pidfd has not ended. */
bool process_is_alive(int pidfd);

/*
 * Writes the name (comm) of pid for a message, "?" if pid is gone. The target chose its bytes.
 */
#define PROCESS_NAME_SIZE 65
void process_name(int32_t pid, char ret[PROCESS_NAME_SIZE]);

#endif
