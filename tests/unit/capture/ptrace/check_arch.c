#include "lib/capture/ptrace/arch.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

#define STACK_BYTES (64 * 1024)

static const struct {
	int signal, flags;
} handlers[] = {
	{SIGURG, SA_SIGINFO},
	{SIGURG, SA_SIGINFO | SA_ONSTACK},
	{SIGUSR1, SA_SIGINFO | SA_NODEFER},
#if defined(__x86_64__)
	{SIGUSR1, 0},
	{SIGUSR1, SA_ONSTACK},
#endif
};

static pid_t child;

static void tear_down(void)
{
	if (child > 0) {
		(void)kill(child, SIGKILL);
		(void)waitpid(child, NULL, 0);
	}
	child = 0;
}

static void on_signal(int signal)
{
	(void)signal;
}

/* Raises the signal for ever. */
static _Noreturn void run(int signal, int flags)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
	static char memory[STACK_BYTES];
	const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};

	if (sigaltstack(&stack, NULL) != 0 || sigaction(signal, &action, NULL) != 0)
		_exit(1);
	for (;;)
		(void)raise(signal);
}

/* Waits for a stop of the child by this signal. */
static void wait_stop(int signal)
{
	int status = 0;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(WSTOPSIG(status), signal);
}

static bool enters(int signal)
{
	struct arch_regs regs;

	OK(arch_get_regs((uint32_t)child, &regs));
	return arch_enters_handler(&regs, signal);
}

FIXTURE(NULL, tear_down)

/* The kernel keeps an interrupt of a stopped thread until the thread is continued. */
TESTS(recognises_the_first_instruction_of_a_handler, array_size(handlers))
{
	const int signal = handlers[_i].signal;

	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0)
		run(signal, handlers[_i].flags);
	OK(ptrace(PTRACE_SEIZE, child, NULL, NULL));
	wait_stop(signal);
	ck_assert(!enters(signal));
	OK(ptrace(PTRACE_INTERRUPT, child, NULL, NULL));
	OK(ptrace(PTRACE_CONT, child, NULL, (void *)(intptr_t)signal));
	wait_stop(SIGTRAP);
	ck_assert(enters(signal));
	ck_assert(!enters(signal + 1));
	/* Its first instruction that changes the stack pointer, or the return from the handler. */
	for (int i = 0; i < 4; i++) {
		OK(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL));
		wait_stop(SIGTRAP);
	}
	ck_assert(!enters(signal));
}
