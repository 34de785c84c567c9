#include "daemon/process/process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/common/resource_shortage.h"
#include "lib/base/clock.h"
#include "lib/base/procfs.h"
#include "lib/base/siphash.h"
#include "lib/base/small_file.h"

/* include/linux/sched.h; field 9 of proc(5)'s stat. */
#define PF_KTHREAD 0x00200000u

static bool read_file(int32_t pid, const char *name, char ret[PROCFS_TEXT_MAX])
{
	return small_file_read(AT_FDCWD, procfs_path(pid, "%s", name).text, ret, PROCFS_TEXT_MAX) ==
		       0 &&
	       ret[0] != '\0';
}

/* Fields 2, 3, 4, 9, 20, 22 and 28 of proc(5)'s stat. */
struct stat_fields {
	char comm[PROCESS_COMM_SIZE];
	char state;
	int parent;
	unsigned int flags;
	long threads;
	unsigned long long start_ticks;
	unsigned long long start_stack;
};

/* The name is in parentheses and can have any byte, so the last ")" ends it. */
static bool read_stat(int32_t pid, struct stat_fields *ret)
{
	char text[PROCFS_TEXT_MAX];
	const char *name, *at;
	size_t n;

	if (!read_file(pid, "stat", text))
		return false;
	name = strchr(text, '(');
	at = strrchr(text, ')');
	if (name == NULL || at == NULL || at <= name)
		return false;
	n = min_u64((size_t)(at - name) - 1, sizeof(ret->comm) - 1);
	memcpy(ret->comm, name + 1, n);
	ret->comm[n] = '\0';
	return sscanf(at + 1,
		      " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u "
		      "%*d %*d %*d %*d %ld %*d %llu %*u %*d %*u %*u %*u %llu",
		      &ret->state, &ret->parent, &ret->flags, &ret->threads, &ret->start_ticks,
		      &ret->start_stack) == 6;
}

static uint64_t tick_length_ns(void)
{
	return NS_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t process_ticks_now(void)
{
	return clock_boot_ns() / tick_length_ns();
}

uint64_t process_born_ns(uint64_t start_ticks)
{
	const uint64_t tick_ns = tick_length_ns();
	const uint64_t boot_ns = clock_boot_ns(), mono_ns = clock_mono_ns();
	const uint64_t age_ns = boot_ns - min_u64(boot_ns, start_ticks * tick_ns);

	return mono_ns - min_u64(mono_ns, age_ns);
}

bool process_is_alive(int pidfd)
{
	struct pollfd ended = {.fd = pidfd, .events = POLLIN};

	return poll(&ended, 1, 0) == 0;
}

/*
 * Returns the process that thread tid belongs to, because TracerPid can be any thread of the
 * tracer.
 */
static int32_t process_of_thread(int32_t tid)
{
	char text[PROCFS_TEXT_MAX];
	uint64_t tgid;

	return read_file(tid, "status", text) && procfs_numbers(text, "\nTgid:", 10, &tgid, 1) == 1
		       ? (int32_t)tgid
		       : tid;
}

int32_t process_tracer(int32_t pid)
{
	char text[PROCFS_TEXT_MAX];
	uint64_t tracer;

	if (!read_file(pid, "status", text) ||
	    procfs_numbers(text, "\nTracerPid:", 10, &tracer, 1) < 1 || tracer == 0)
		return 0;
	return process_of_thread((int32_t)tracer);
}

static enum process_fault read_state(int32_t pid, struct process *ret)
{
	char text[PROCFS_TEXT_MAX];
	struct stat_fields stat;
	struct ids ids;
	uint64_t tgid, tracer;

	errno = 0;
	if (!read_stat(pid, &stat) || !read_file(pid, "status", text))
		return resource_shortage_is(errno) ? PROCESS_SHORTAGE : PROCESS_GONE;
	if (stat.flags & PF_KTHREAD)
		return PROCESS_KERNEL_THREAD;
	if (procfs_numbers(text, "\nTgid:", 10, &tgid, 1) < 1 || !ids_parse(text, &ids) ||
	    procfs_numbers(text, "\nTracerPid:", 10, &tracer, 1) < 1)
		return PROCESS_UNREADABLE;
	if (tgid != (uint64_t)pid) {
		ret->pid = (int32_t)tgid;
		return PROCESS_THREAD;
	}
	/* A leader that has exited before its threads is in state Z, too. */
	if (stat.state == 'X' || (stat.state == 'Z' && stat.threads <= 1))
		return PROCESS_ZOMBIE;
	ret->parent = stat.parent;
	ret->start_ticks = stat.start_ticks;
	ret->leader_has_exited = stat.state == 'Z';
	memcpy(ret->comm, stat.comm, sizeof(ret->comm));
	ret->uid = ids.uid[IDS_EFFECTIVE];
	ret->tracer = tracer == 0 ? 0 : process_of_thread((int32_t)tracer);
	return tracer != 0 ? PROCESS_TRACED : PROCESS_OK;
}

const char *process_fault_text(enum process_fault fault)
{
	switch (fault) {
	case PROCESS_GONE:
		return "does not exist: nothing runs here with this pid";
	case PROCESS_KERNEL_THREAD:
		return "is a kernel thread: it has no user stack to profile; "
		       "perf can profile the kernel";
	case PROCESS_ZOMBIE:
		return "has ended already (it is a zombie): its parent has not waited "
		       "for it yet";
	case PROCESS_UNREADABLE:
		return "cannot be read in /proc: is /proc mounted with hidepid?";
	case PROCESS_SHORTAGE:
		return "cannot be read in /proc: descriptors or memory are short";
	case PROCESS_OK:
	case PROCESS_TRACED:
	case PROCESS_THREAD:
		break;
	}
	return NULL;
}

enum process_fault process_look(int32_t pid, struct process *ret)
{
	/*
	 * The pidfd is opened first, so that everything read before the process ends belongs to
	 * this process and not to a later one with the same pid.
	 */
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int error = errno;
	enum process_fault fault;
	bool exists;

	*ret = (struct process){.pid = pid, .pidfd = -1};
	if (pidfd < 0 && resource_shortage_is(error))
		return PROCESS_SHORTAGE;
	fault = read_state(pid, ret);
	/* PROCESS_TRACED means that the process exists, too. */
	exists = fault == PROCESS_OK || fault == PROCESS_TRACED;
	if (exists && pidfd < 0)
		fault = error == ESRCH ? PROCESS_GONE : PROCESS_UNREADABLE;
	else if (exists && !process_is_alive(pidfd))
		fault = PROCESS_GONE;
	else if (exists)
		ret->pidfd = pidfd;
	else if (fault == PROCESS_GONE && pidfd >= 0 && process_is_alive(pidfd))
		fault = PROCESS_UNREADABLE;
	if (ret->pidfd < 0)
		close_fd(&pidfd);
	return fault;
}

bool process_identity(int32_t pid, struct process_identity *ret)
{
	static const uint8_t no_key[SIPHASH_KEY_SIZE];
	char bytes[16 + PROCESS_COMM_SIZE];
	struct stat_fields stat;

	if (!read_stat(pid, &stat) || (stat.flags & PF_KTHREAD))
		return false;
	ret->start_ticks = stat.start_ticks;
	ret->start_stack = stat.start_stack;
	/* Fixed offsets, so that no two values can be confused. */
	memcpy(bytes, &stat.start_ticks, 8);
	memcpy(bytes + 8, &stat.start_stack, 8);
	(void)snprintf(bytes + 16, PROCESS_COMM_SIZE, "%s", stat.comm);
	ret->program_hash = siphash(no_key, bytes, 16 + strlen(bytes + 16));
	return true;
}

/* The kernel gives /proc/PID to the effective user (task_dump_owner() in fs/proc/base.c). */
uint32_t process_user(int32_t pid)
{
	struct stat st;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) < 0 ? UINT32_MAX : st.st_uid;
}

int process_ids(int32_t pid, struct ids *ret)
{
	char text[PROCFS_TEXT_MAX];

	return read_file(pid, "status", text) && ids_parse(text, ret) ? 0 : -ESRCH;
}

bool process_is_of(int32_t pid, uint32_t uid)
{
	struct ids ids;

	if (process_ids(pid, &ids) < 0)
		return false;
	for (int k = IDS_REAL; k <= IDS_SAVED; k++)
		if (ids.uid[k] != 0 && ids.uid[k] != uid)
			return false;
	return true;
}

void process_name(int32_t pid, char ret[PROCESS_NAME_SIZE])
{
	char text[PROCFS_TEXT_MAX];
	size_t n;

	memcpy(ret, "?", 2);
	if (!read_file(pid, "comm", text))
		return;
	n = strcspn(text, "\n");
	n = n < PROCESS_NAME_SIZE ? n : PROCESS_NAME_SIZE - 1;
	memcpy(ret, text, n);
	ret[n] = '\0';
}

uint32_t process_owner(int32_t pid)
{
	struct stat st;

	/*
	 * A file and not the directory, which always belongs to the process's user
	 * (fs/proc/base.c).
	 */
	return stat(procfs_path(pid, "stat").text, &st) == 0 ? st.st_uid : UINT32_MAX;
}
