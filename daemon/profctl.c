/*
 * sentry-profctl: for the operator.
 *
 *   sentry-profctl stack PID    the stacks of all threads, now, by libunwind
 *
 * It works by itself, with the rights of who runs it; no daemon is needed. Each
 * thread is stopped while its stack is unwound (about a millisecond): this is
 * a tool to look with, not the profiler.
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <libunwind-ptrace.h>

#include "daemon/log.h"
#include "lib/base/util.h"
#include "lib/capture/arch.h"
#include "lib/capture/repair.h"
#include "lib/capture/tracee.h"

#define STACK_FRAMES_MAX 512
#define SYMBOL_MAX	 512

static const char help[] =
	"usage: sentry-profctl stack PID\n"
	"       sentry-profctl --version | --help\n"
	"\n"
	"stack PID  prints the stack of every thread of the process, unwound\n"
	"           by libunwind: what sentry-profd's stacks can be compared\n"
	"           with. Each thread is stopped for about a millisecond.\n";

static void print_name(pid_t pid, pid_t tid)
{
	char path[64], comm[64] = "?\n";
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
	file = fopen(path, "re");
	if (file != NULL) {
		if (fgets(comm, sizeof(comm), file) == NULL)
			memcpy(comm, "?\n", 3);
		(void)fclose(file);
	}
	printf("thread %d ", tid);
	for (const char *p = comm; *p != '\0' && *p != '\n'; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			printf("\\x%02x", (unsigned char)*p);
		else
			(void)putchar(*p);
	(void)putchar('\n');
}

static void print_stack(unw_addr_space_t space, pid_t tid)
{
	void *accessor = _UPT_create(tid);
	unw_cursor_t cursor;
	int r = accessor == NULL ? -UNW_ENOMEM
				 : unw_init_remote(&cursor, space, accessor);

	for (int n = 0; r >= 0 && n < STACK_FRAMES_MAX; n++) {
		char symbol[SYMBOL_MAX] = "";
		unw_word_t pc = 0, offset = 0;

		(void)unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (pc == 0)
			break;
		(void)unw_get_proc_name(&cursor, symbol, sizeof(symbol),
					&offset);
		printf("  #%-3d 0x%016llx", n, (unsigned long long)pc);
		if (symbol[0] != '\0')
			printf(" %s+0x%llx", symbol,
			       (unsigned long long)offset);
		(void)putchar('\n');
		r = unw_step(&cursor);
		if (r == 0)
			break;
	}
	if (r < 0)
		printf("  ended: %s\n", unw_strerror(r));
	if (accessor != NULL)
		_UPT_destroy(accessor);
}

/* Returns 0, or -errno if the thread could not be traced. */
static int look_at(unw_addr_space_t space, pid_t pid, pid_t tid)
{
	struct user_regs_struct regs;
	enum tracee_status kind;
	int status, signal;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ||
	    waitpid(tid, &status, __WALL) < 0)
		return 0;
	kind = tracee_classify(status, &signal);
	if (kind == TRACEE_DEAD)
		return 0;
	print_name(pid, tid);
	print_stack(space, tid);
	/* Nobody's call fails because we have looked. */
	if (kind == TRACEE_TRAP && arch_get_regs((uint32_t)tid, &regs) == 0)
		(void)repair_call((uint32_t)tid, &regs, 0);
	(void)ptrace(PTRACE_DETACH, tid, NULL,
		     (void *)(intptr_t)(kind == TRACEE_SIGNAL ? signal : 0));
	return 0;
}

static int print_stacks(pid_t pid)
{
	unw_addr_space_t space = unw_create_addr_space(&_UPT_accessors, 0);
	char path[64];
	struct dirent *entry;
	int looked = 0, error = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (space == NULL || dir == NULL) {
		log_error("no process %d: nothing runs here with this pid",
			  pid);
		return EXIT_FAILURE;
	}
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
	while ((entry = readdir(dir)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);
		int r = tid <= 0 ? 0 : look_at(space, pid, (pid_t)tid);

		if (tid > 0 && r == 0)
			looked++;
		else if (r < 0)
			error = -r;
	}
	(void)closedir(dir);
	unw_destroy_addr_space(space);
	if (looked > 0)
		return EXIT_SUCCESS;
	log_error("cannot trace process %d: %s (root may, or its owner where "
		  "Yama allows it; and only one tracer at a time)",
		  pid, strerror(error));
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	char *end;
	long pid;

	log_init("sentry-profctl", false);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("sentry-profctl %s\n", SENTRY_PROFD_VERSION);
		return EXIT_SUCCESS;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		(void)fputs(help, stdout);
		return EXIT_SUCCESS;
	}
	if (argc != 3 || strcmp(argv[1], "stack") != 0) {
		(void)fputs(help, stderr);
		return 2;
	}
	pid = strtol(argv[2], &end, 10);
	if (argv[2][0] < '0' || argv[2][0] > '9' || *end != '\0' || pid < 1 ||
	    pid > INT32_MAX) {
		log_error("stack: not a pid: '%s'", argv[2]);
		return 2;
	}
	return print_stacks((pid_t)pid);
}
