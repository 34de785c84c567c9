/*
 * What the parts of crash.c have in common: the memory that the program shares
 * with the process that writes its crash report, and how both print.
 */
#ifndef TESTS_TARGETS_CRASH_H
#define TESTS_TARGETS_CRASH_H

#include "life.h"

#define CRASH_THREADS_MAX 1100

/* The program writes this and the thread's number on each thread's stack. */
#define MARK_HIGH UINT64_C(0x5ca1ab1e00000000)

/* A thread that the report has to contain. */
struct member {
	atomic_int tid;
	bool waits_forever; /* in one call, which has this number */
	long call;
	atomic_ulong returns; /* of its calls */
};

struct shared {
	pid_t pid;
	struct member members[CRASH_THREADS_MAX];
	atomic_uint n_members;
	/* Reports that have begun to attach, and reports that have detached. */
	atomic_uint begun, ended;
	/* The crash that is reported: by its handler. */
	unsigned int crash;
	pid_t crashed;
	uintptr_t context;   /* the address of the handler's ucontext_t */
	uint64_t handler_us; /* from the fault to the handler */
	atomic_uint n_wrong;
};

static struct shared *shared;

/* Prints a line by one write(2): callable in a handler, and in a child of a process with threads.
 */
__attribute__((format(printf, 2, 3))) static inline void say(int fd, const char *format, ...)
{
	char line[512];
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (n > 0)
		(void)!write(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

/* Says what a call or a signal of the program did that it does not do without a profiler. */
#define crash_wrong(format, ...)                                                  \
	do {                                                                      \
		if (atomic_fetch_add(&shared->n_wrong, 1) < WRONG_MAX)            \
			say(STDERR_FILENO, "wrong: " format "\n", ##__VA_ARGS__); \
	} while (0)

/* Marks the stack of the calling thread, in the frame of the caller. */
#define MARK_STACK(name)                                                    \
	volatile uint64_t name[2] = {MARK_HIGH | (uint64_t)thread_number(), \
				     MARK_HIGH | (uint64_t)thread_number()}

#define KEEP_MARK(name) __asm__ volatile("" : : "m"(name))

static struct member *member_add(void)
{
	const unsigned int i = atomic_fetch_add(&shared->n_members, 1);

	must(i < CRASH_THREADS_MAX, "too many threads");
	return &shared->members[i];
}

/* Is a thread of the program blocked in its call? A stop makes a sleep another call. */
static inline bool member_is_blocked(const struct member *m)
{
	char path[64], text[256];
	ssize_t n;
	long call;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", shared->pid,
		       atomic_load(&m->tid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	if (n <= 0 || text[0] < '0' || text[0] > '9')
		return false;
	text[n] = '\0';
	call = strtol(text, NULL, 10);
	return call == m->call || call == SYS_restart_syscall;
}

/*
 * Waits until each thread that waits forever is in its call, and each other one
 * has returned from one, except the thread that has crashed. A wait that a stop
 * has ended wrongly has been noticed then.
 */
static inline void wait_calm(pid_t except)
{
	const uint64_t since = now_ns();
	const unsigned int n = atomic_load(&shared->n_members);
	unsigned long before[CRASH_THREADS_MAX];

	for (unsigned int i = 0; i < n; i++)
		before[i] = atomic_load(&shared->members[i].returns);
	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < n; i++) {
			const struct member *m = &shared->members[i];

			while (atomic_load(&m->tid) != except &&
			       (m->waits_forever
					? !member_is_blocked(m)
					: m->call != 0 && atomic_load(&m->returns) == before[i]))
				patience(since, "threads in their calls");
		}
	}
}

#endif
