/*
 * The process that writes the crash report of crash.c. It attaches to every
 * thread that /proc lists, reads the registers and the stack of each, looks for
 * the mark that each thread has put on its stack, prints one line, and detaches.
 * The order of the calls is that of Breakpad's linux_ptrace_dumper.cc, of
 * crashpad's scoped_ptrace_attach.cc and of Rust's minidump-writer.
 */
#ifndef TESTS_TARGETS_CRASH_REPORT_H
#define TESTS_TARGETS_CRASH_REPORT_H

#include <dirent.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "crash.h"

#define PAGE	    4096u
#define STACK_BYTES (ALTSTACK + PAGE)
#define TIDS_MAX    (2 * CRASH_THREADS_MAX)

#if defined(__x86_64__)
#define floating_registers user_fpregs_struct
#define SP		   rsp
#define PC		   rip
#define CONTEXT_SP	   gregs[REG_RSP]
#else
#define floating_registers user_fpsimd_struct
#define SP		   sp
#define PC		   pc
#define CONTEXT_SP	   sp
#endif

static struct reporting {
	bool seizes;	  /* PTRACE_SEIZE and PTRACE_INTERRUPT; else PTRACE_ATTACH */
	const char *read; /* the stacks: by process_vm_readv ("vm"), /proc/PID/mem, or
			     PTRACE_PEEKDATA */
	bool gives_up;	  /* if it cannot attach to the main thread, as crashpad */
	bool stops;	  /* the process before, by SIGSTOP, as minidump-writer */
	bool is_calm;	  /* waits until the threads are in their calls */
	bool holds;	  /* the process until a line comes */
} reporting;

struct report {
	pid_t tids[TIDS_MAX];
	bool is_attached[TIDS_MAX];
	unsigned int n;
	int memory; /* /proc/PID/mem */
	unsigned int attached, failed, odd, registers, stacks, crashed;
	int error;
};

static struct report report;

static void note_failure(int error)
{
	/* Reporters leave out a thread that has ended. */
	if (error == ESRCH)
		return;
	report.failed++;
	if (report.error == 0)
		report.error = error;
}

/* Waits until the thread has stopped for the attachment; false: it has ended. */
static bool wait_stop(pid_t tid)
{
	int status, signal;

	for (;;) {
		if (waitpid(tid, &status, __WALL) != tid) {
			if (errno == EINTR)
				continue;
			return false;
		}
		if (!WIFSTOPPED(status))
			return false;
		signal = WSTOPSIG(status);
		if (reporting.seizes ? status >> 16 == PTRACE_EVENT_STOP : signal == SIGSTOP)
			return true;
		/* A signal for the thread comes first. */
		report.odd++;
		(void)ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)signal);
	}
}

static bool attach(pid_t tid)
{
	if (ptrace(reporting.seizes ? PTRACE_SEIZE : PTRACE_ATTACH, tid, NULL, NULL) != 0 ||
	    (reporting.seizes && ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)) {
		note_failure(errno);
		return false;
	}
	return wait_stop(tid);
}

static bool is_listed(pid_t tid)
{
	for (unsigned int i = 0; i < report.n; i++)
		if (report.tids[i] == tid)
			return true;
	return false;
}

/*
 * Lists the threads, the main thread first; returns how many are new. Without
 * malloc(3): another thread of the program may have been in it at clone(2).
 */
static unsigned int list_threads(void)
{
	const unsigned int before = report.n;
	char path[64], buffer[16384] __attribute__((aligned(8)));
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", shared->pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(fd >= 0, path);
	while ((n = getdents64(fd, buffer, sizeof(buffer))) > 0) {
		for (ssize_t i = 0; i < n;) {
			const struct dirent64 *entry = (const void *)(buffer + i);
			const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

			if (tid > 0 && report.n < TIDS_MAX && !is_listed(tid))
				report.tids[report.n++] = tid;
			i += entry->d_reclen;
		}
	}
	(void)close(fd);
	return report.n - before;
}

/* Returns false if the report is given up. */
static bool attach_all(void)
{
	unsigned int done = 0;

	/* Threads that start meanwhile are in the next list. */
	while (list_threads() > 0) {
		for (; done < report.n; done++) {
			report.is_attached[done] = attach(report.tids[done]);
			if (!report.is_attached[done] && done == 0 && reporting.gives_up)
				return false;
		}
	}
	return true;
}

static bool read_registers(pid_t tid, uint64_t *ret_sp)
{
	struct user_regs_struct general = {0};
	struct floating_registers floating;
	struct iovec io = {&general, sizeof(general)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0 ||
	    io.iov_len != sizeof(general))
		return false;
	io = (struct iovec){&floating, sizeof(floating)};
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_FPREGSET, &io) != 0)
		return false;
	*ret_sp = general.SP;
	return general.PC != 0;
}

static ssize_t peek(pid_t tid, uint64_t address, void *to, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(long)) {
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, tid, (void *)(uintptr_t)(address + i), NULL);
		if (errno != 0)
			return i == 0 ? -1 : (ssize_t)i;
		memcpy((char *)to + i, &word, sizeof(word));
	}
	return (ssize_t)n;
}

/* Of one page. Returns the number of bytes, or -1. */
static ssize_t read_memory(pid_t tid, uint64_t address, void *to, size_t n)
{
	struct iovec local = {to, n}, remote = {(void *)(uintptr_t)address, n};

	if (strcmp(reporting.read, "vm") == 0)
		return process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (strcmp(reporting.read, "mem") == 0)
		return pread(report.memory, to, n, (off_t)address);
	return peek(tid, address, to, n);
}

/*
 * Is the thread's mark in the stack above this address? Pages that cannot be
 * read come first if the stack has overflowed: its guard.
 */
static bool has_mark(pid_t tid, uint64_t sp)
{
	const uint64_t mark = MARK_HIGH | (uint64_t)tid, end = sp + STACK_BYTES;
	uint64_t words[PAGE / 8];
	bool has_begun = false;

	for (uint64_t at = sp & ~UINT64_C(7), next; at < end; at = next) {
		ssize_t n;

		next = (at | (PAGE - 1)) + 1;
		n = read_memory(tid, at, words, (size_t)(next - at));
		if (n <= 0 && has_begun)
			return false;
		has_begun = has_begun || n > 0;
		for (ssize_t i = 0; i < n / 8; i++)
			if (words[i] == mark)
				return true;
	}
	return false;
}

/* The stack at the fault, which is another one than that of the handler. */
static void read_crashed_stack(void)
{
	ucontext_t context;
	const uint64_t at = shared->context;
	size_t done = 0;

	while (done < sizeof(context)) {
		const uint64_t from = at + done;
		size_t n = PAGE - from % PAGE;
		ssize_t got;

		if (n > sizeof(context) - done)
			n = sizeof(context) - done;
		got = read_memory(shared->crashed, from, (char *)&context + done, n);
		if (got <= 0)
			return;
		done += (size_t)got;
	}
	report.crashed = has_mark(shared->crashed, (uint64_t)context.uc_mcontext.CONTEXT_SP);
}

static void read_threads(void)
{
	const unsigned int n = atomic_load(&shared->n_members);
	uint64_t sp;

	for (unsigned int i = 0; i < report.n; i++) {
		bool is_member = false;

		for (unsigned int k = 0; k < n && !is_member; k++)
			is_member = atomic_load(&shared->members[k].tid) == report.tids[i];
		if (!is_member || !report.is_attached[i])
			continue;
		report.attached++;
		if (!read_registers(report.tids[i], &sp))
			continue;
		report.registers++;
		report.stacks += has_mark(report.tids[i], sp);
	}
	read_crashed_stack();
}

static void detach_all(void)
{
	for (unsigned int i = 0; i < report.n; i++)
		if (report.is_attached[i] &&
		    ptrace(PTRACE_DETACH, report.tids[i], NULL, NULL) != 0 && errno != ESRCH)
			note_failure(errno);
}

static void stop_process(void)
{
	const uint64_t since = now_ns();
	char path[64], text[512], state = '\0';

	must(kill(shared->pid, SIGSTOP) == 0, "SIGSTOP");
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", shared->pid);
	while (state != 'T' && state != 't') {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		const char *end;

		(void)close(fd);
		must(n > 0, path);
		text[n] = '\0';
		end = strrchr(text, ')');
		state = end != NULL ? end[2] : '\0';
		patience(since, "the process to stop");
	}
}

static void read_line(void)
{
	char byte = '\0';

	while (byte != '\n' && read(STDIN_FILENO, &byte, 1) == 1)
		;
}

/* Writes the report of the crash that shared describes. */
static void write_report(void)
{
	char path[64];

	/* A report that does not end ends its process. */
	(void)alarm(PATIENCE_S);
	memset(&report, 0, sizeof(report));
	if (reporting.is_calm)
		wait_calm(shared->crashed);
	atomic_fetch_add(&shared->begun, 1);
	if (reporting.stops)
		stop_process();
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", shared->pid);
	report.memory = open(path, O_RDONLY | O_CLOEXEC);
	if (attach_all())
		read_threads();
	if (reporting.holds) {
		say(STDOUT_FILENO, "holding %d\n", getpid());
		read_line();
	}
	detach_all();
	if (reporting.stops)
		must(kill(shared->pid, SIGCONT) == 0, "SIGCONT");
	atomic_fetch_add(&shared->ended, 1);
	(void)close(report.memory);
	say(STDOUT_FILENO,
	    "report %u: threads %u attached %u failed %u errno %d registers %u stacks %u "
	    "crashed %u odd %u traced %d handler_us %lu\n",
	    shared->crash, atomic_load(&shared->n_members), report.attached, report.failed,
	    report.error, report.registers, report.stacks, report.crashed, report.odd, is_traced(),
	    shared->handler_us);
	(void)alarm(0);
}

#endif
