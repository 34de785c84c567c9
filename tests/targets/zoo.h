/*
 * The body of the zoo_* targets, which differ in compiler, libc and flags: a
 * program that keeps the return addresses of its own functions, so that it
 * knows its stack frame by frame.
 *
 * argv[1] is what it does. It prints, for each thread that waits in the depth,
 *
 *	stack TID ADDRESS...
 *
 * innermost first: the return addresses of its functions down to main's or the
 * thread's, in the form that unwind.h gives them in (the place that a signal
 * interrupted: plus 1); then "ready", and waits for ever.
 */
#ifndef TESTS_TARGETS_ZOO_H
#define TESTS_TARGETS_ZOO_H

#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "context.h"

#define NOINLINE __attribute__((noinline, used))
/* After a call: keeps it from becoming a jump. */
#define AFTER_CALL() __asm__ volatile("" ::: "memory")

#define SHADOW_MAX 16384

static __thread uintptr_t *shadow;
static __thread int depth;
static volatile unsigned long sink;

static void push(uintptr_t address)
{
	if (shadow == NULL)
		shadow = calloc(SHADOW_MAX, sizeof(*shadow));
	shadow[depth++] = address;
}

#define ENTER() push((uintptr_t)__builtin_return_address(0))
#define LEAVE()               \
	do {                  \
		AFTER_CALL(); \
		depth--;      \
	} while (0)

static volatile int n_waiting;
static int n_expected = 1;

/* Says where it is, and waits in a call of its libc. */
static NOINLINE void wait_here(void)
{
	char c;

	ENTER();
	flockfile(stdout);
	printf("stack %ld", syscall(SYS_gettid));
	for (int i = depth; i-- > 0;)
		printf(" %lx", (unsigned long)shadow[i]);
	printf("\n");
	if (++n_waiting == n_expected)
		printf("ready %d\n", (int)getpid());
	fflush(stdout);
	funlockfile(stdout);
	for (;;) {
		/* Standard input is open and stays empty. */
		if (read(STDIN_FILENO, &c, 1) == 0)
			_exit(0);
		AFTER_CALL();
	}
}

#include "zoo_frames.h"
#include "zoo_stacks.h"
#include "zoo_work.h"
#ifdef ZOO_MORE
#include "zoo_more.h"
#endif

static const struct mode {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"frames", frames},
	{"tail", tail},
	{"noreturn", noreturn},
	{"deep", deep},
	{"deepest", deepest},
	{"split", split},
	{"callback", callback},
	{"exiting", exiting},
	{"signal_fault", signal_fault},
	{"signal_nested", signal_nested},
	{"signal_first", signal_first},
#ifndef ZOO_NO_CONTEXT
	{"context", context},
#endif
	{"jumped", jumped},
	{"threads", threads},
	{"work", work},
#ifdef ZOO_MORE
	{"alternate", alternate},
	{"alternate_nested", alternate_nested},
	{"alternate_within", alternate_within},
	{"alternate_thread", alternate_thread},
	{"coroutine", coroutine},
	{"ending_coroutine", ending_coroutine},
	{"realigned", realigned},
	{"frame_pointer", frame_pointer},
	{"no_frame_pointer", no_frame_pointer},
	{"frame_varies", frame_varies},
	{"way_out", way_out},
	{"never_back", never_back},
	{"go_mcall", go_mcall},
	{"go_systemstack", go_systemstack},
	{"go_nanotime", go_nanotime},
	{"cloned", cloned},
#endif
};

static NOINLINE void run(const struct mode *m)
{
	ENTER();
	call(m->run);
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (argc > 1 && strcmp(modes[i].name, argv[1]) == 0)
			run(&modes[i]);
	return 2;
}

#endif
