/*
 * What the kernel decides by looking at a process, or at its tracer.
 *
 * Usage: life_rights filters N | crash MIB | ids | exec PROGRAM
 *   filters  calls under a seccomp filter: each answer as filter(s) have it
 *   crash    a thread dies by SIGSEGV while others calculate and wait; MIB of
 *            memory are in use
 *   ids      says its user IDs, and whether it was started in secure mode
 *   exec     runs PROGRAM with "ids": a set-user-ID copy of this one
 */
#include "filter.h"
#include "life.h"

#include <poll.h>
#include <sys/auxv.h>

static atomic_ulong trapped;

static void on_trap(int signal, siginfo_t *info, void *unused)
{
	(void)unused;
	if (signal != SIGSYS || info->si_syscall != SYS_getppid)
		wrong("a trap for call %d", info->si_syscall);
	atomic_fetch_add(&trapped, 1);
}

/*
 * Long enough to be met by a tick now and then. That one gives up where it is
 * interrupted, but this is not why.
 */
static void give_up_always(void)
{
	for (int i = 0; i < 2000; i++)
		if (syscall(SYS_fallocate, 0, 0, 0, 1) != -1 || errno != EINTR)
			wrong("fallocate: %s", strerror(errno));
}

static atomic_int waiting_tid;

static void *wait_for_ever(void *unused)
{
	waiting_tid = thread_number();
	for (;;)
		(void)poll(NULL, 0, -1);
	return unused;
}

static int filters(long rounds)
{
	const struct timespec nap = {.tv_nsec = 300000};

	handle_info(SIGSYS, on_trap, 0);
	must(FILTER_INSTALL(
		     0,
		     FILTER_CALL(SYS_restart_syscall, SECCOMP_RET_KILL_PROCESS),
		     FILTER_CALL(SYS_getppid, SECCOMP_RET_TRAP),
		     FILTER_CALL(SYS_getpgid, SECCOMP_RET_ERRNO | EILSEQ),
		     FILTER_CALL(SYS_getsid, SECCOMP_RET_TRACE | 1),
		     FILTER_CALL(SYS_fallocate, SECCOMP_RET_ERRNO | EINTR)),
	     "seccomp");
	start(calculate, NULL);
	for (long n = 0; n < rounds; n++) {
		give_up_always();
		(void)syscall(SYS_getppid);
		if (syscall(SYS_getpgid, 0) != -1 || errno != EILSEQ)
			wrong("SECCOMP_RET_ERRNO: %s", strerror(errno));
		/* There is no tracer that wants to know. */
		if (syscall(SYS_getsid, 0) != -1 || errno != ENOSYS)
			wrong("SECCOMP_RET_TRACE: %s", strerror(errno));
		if (poll(NULL, 0, 1) != 0 || nanosleep(&nap, NULL) != 0)
			wrong("a wait fails: %s", strerror(errno));
	}
	printf("trapped %lu\n", atomic_load(&trapped));
	return finish();
}

static int crash(size_t mib)
{
	uint64_t *words = malloc((mib << 20) + 1), state = 1;

	must(words != NULL, "malloc");
	for (size_t i = 0; i < (mib << 20) / sizeof(*words); i++)
		words[i] = draw(&state);
	start(calculate, NULL);
	start(wait_for_ever, NULL);
	run_for(300000000);
	/* Its place is in the core. */
	while (waiting_tid == 0 || blocked_in(waiting_tid) < 0)
		(void)sched_yield();
	*(volatile char *)(uintptr_t)4242 = 1;
	return 0;
}

int main(int argc, char **argv)
{
	uid_t real, effective, saved;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "ids") == 0) {
		must(getresuid(&real, &effective, &saved) == 0, "getresuid");
		printf("ids %u %u %u secure %lu\n", real, effective, saved,
		       getauxval(AT_SECURE));
		return 0;
	}
	if (argc < 3)
		return 2;
	begin();
	if (strcmp(argv[1], "crash") == 0)
		return crash(strtoul(argv[2], NULL, 10));
	if (strcmp(argv[1], "filters") == 0)
		return filters(strtol(argv[2], NULL, 10));
	start(calculate, NULL);
	run_for(300000000);
	execl(argv[2], argv[2], "ids", NULL);
	give_up("exec");
}
