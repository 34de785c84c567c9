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

/* Frames of many kinds. */

static NOINLINE void with_aligned(int n)
{
	__attribute__((aligned(256))) volatile char room[512];

	ENTER();
	room[n & 511] = 1;
	wait_here();
	sink += (unsigned long)room[n & 511];
	LEAVE();
}

static NOINLINE void with_large(int n)
{
	volatile char room[200000];

	ENTER();
	room[n] = 1;
	with_aligned(n);
	sink += (unsigned long)room[n];
	LEAVE();
}

static NOINLINE void with_array(int n)
{
	volatile char room[n * 100 + 1];

	ENTER();
	room[n] = 1;
	with_large(n);
	sink += (unsigned long)room[n];
	LEAVE();
}

static NOINLINE void with_alloca(int n)
{
	volatile char *room = alloca((size_t)n * 333);

	ENTER();
	room[0] = 1;
	with_array(n);
	sink += (unsigned long)room[0];
	LEAVE();
}

/* Its arguments go through the stack: pushes before the call. */
static NOINLINE int many_arguments(int a, int b, int c, int d, int e, int f,
				   int g, int h, int i)
{
	ENTER();
	sink += (unsigned long)(a + b + c + d + e + f + g + h + i);
	with_alloca(a + i);
	LEAVE();
	return h;
}

static NOINLINE int variadic(int n, ...)
{
	va_list list;
	int sum;

	ENTER();
	va_start(list, n);
	sum = many_arguments(va_arg(list, int), 2, 3, 4, 5, 6, n, 8, 9);
	va_end(list);
	LEAVE();
	return sum;
}

static void frames(void)
{
	ENTER();
	variadic(3, 1, 2, 3);
	LEAVE();
}

static uintptr_t return_of_tail_caller;

static NOINLINE void tail_called(void)
{
	/* Optimized, it was jumped to and returns to its caller's caller. */
	if ((uintptr_t)__builtin_return_address(0) != return_of_tail_caller)
		push(return_of_tail_caller);
	ENTER();
	wait_here();
	LEAVE();
}

static NOINLINE void tail_caller(int n)
{
	return_of_tail_caller = (uintptr_t)__builtin_return_address(0);
	sink += (unsigned long)n;
	return n & 1 ? tail_called() : wait_here();
}

static void tail(void)
{
	ENTER();
	tail_caller((int)sink | 1);
	LEAVE();
}

static NOINLINE __attribute__((noreturn)) void never(void)
{
	ENTER();
	for (;;)
		wait_here();
}

/* The call is its last instruction: the return address is the next one's. */
static NOINLINE __attribute__((noreturn)) void last_call(void)
{
	ENTER();
	never();
}

static void noreturn(void)
{
	ENTER();
	last_call();
	LEAVE();
}

static NOINLINE unsigned long recurse(int n)
{
	unsigned long sum;

	ENTER();
	if (n == 0)
		wait_here();
	sum = n > 0 ? recurse(n - 1) : 0;
	LEAVE();
	return sum + sink;
}

static void deep(void)
{
	ENTER();
	recurse(1000);
	LEAVE();
}

static void deepest(void)
{
	ENTER();
	recurse(10000);
	LEAVE();
}

/* A part that is hardly ever run is put far away from the rest. */
static NOINLINE void hot_and_cold(int n)
{
	ENTER();
	for (int i = 0; i < 100; i++)
		sink += (unsigned long)i * (unsigned long)n;
	if (__builtin_expect(n == 1, 0)) {
		wait_here();
		sink++;
		LEAVE();
		return;
	}
	LEAVE();
}

static __attribute__((cold, noinline)) void unlikely(int n)
{
	ENTER();
	hot_and_cold(n);
	LEAVE();
}

static void split(void)
{
	ENTER();
	for (int i = 0; i < 50; i++)
		hot_and_cold(2);
	unlikely(1);
	LEAVE();
}

/* libc calls back. */

static int compare(const void *a, const void *b)
{
	ENTER();
	wait_here();
	LEAVE();
	return *(const char *)a - *(const char *)b;
}

static void callback(void)
{
	char text[] = "zoo";

	ENTER();
	qsort(text, 3, 1, compare);
	LEAVE();
}

static void at_exit(void)
{
	ENTER();
	wait_here();
	LEAVE();
}

static void exiting(void)
{
	ENTER();
	atexit(at_exit);
	exit(0);
}

/* Signals. */

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig, (void)info;
	/* The trampoline that it returns to is no function of this program. */
	push((uintptr_t)u->uc_mcontext.gregs[REG_RIP] + 1);
	wait_here();
	AFTER_CALL();
	depth--;
}

static NOINLINE void handle(int sig, int flags, void *handler)
{
	struct sigaction sa = {.sa_flags = SA_SIGINFO | flags};

	memcpy(&sa.sa_sigaction, &handler, sizeof(handler));
	sigaction(sig, &sa, NULL);
}

static NOINLINE void fault(void)
{
	ENTER();
	*(volatile int *)(uintptr_t)(sink & 0) = 1;
	LEAVE();
}

static void signal_fault(void)
{
	ENTER();
	handle(SIGSEGV, 0, (void *)on_signal);
	fault();
	LEAVE();
}

static void on_outer(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig, (void)info;
	push((uintptr_t)u->uc_mcontext.gregs[REG_RIP] + 1);
	fault();
	AFTER_CALL();
	depth--;
}

/* One handler interrupted by the next signal. */
static void signal_nested(void)
{
	ENTER();
	handle(SIGSEGV, 0, (void *)on_signal);
	handle(SIGILL, 0, (void *)on_outer);
	__asm__ volatile("ud2");
	LEAVE();
}

/* An address that cannot be called: nothing of the caller's frame is there. */
static NOINLINE void call(void (*function)(void))
{
	ENTER();
	function();
	LEAVE();
}

/* A function whose first instruction faults. */
__asm__(".text\n"
	".type zoo_faults_first, @function\n"
	"zoo_faults_first:\n"
	".cfi_startproc\n"
	"	movl $0, 0\n"
	"	pushq %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	"	popq %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size zoo_faults_first, . - zoo_faults_first\n");
void zoo_faults_first(void);

static void on_first(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uintptr_t *sp = (uintptr_t *)u->uc_mcontext.gregs[REG_RSP];

	(void)sig, (void)info;
	push(*sp);
	push((uintptr_t)u->uc_mcontext.gregs[REG_RIP] + 1);
	wait_here();
	AFTER_CALL();
	depth--;
}

static void signal_first(void)
{
	ENTER();
	handle(SIGSEGV, 0, (void *)on_first);
	call(zoo_faults_first);
	LEAVE();
}

/* Stacks of one's own. */

#define STACK_BYTES (256 * 1024)

#ifndef ZOO_NO_CONTEXT
static ucontext_t back, there;

static void in_context(void)
{
	/* It returns to makecontext's trampoline, not to this program. */
	wait_here();
	AFTER_CALL();
}

static void context(void)
{
	ENTER();
	getcontext(&there);
	there.uc_stack.ss_sp = malloc(STACK_BYTES);
	there.uc_stack.ss_size = STACK_BYTES;
	there.uc_link = &back;
	makecontext(&there, in_context, 0);
	/* The stack begins anew. */
	depth = 0;
	swapcontext(&back, &there);
	LEAVE();
}

#endif

static jmp_buf env;

static NOINLINE void jump(int n)
{
	ENTER();
	if (n > 0)
		jump(n - 1);
	longjmp(env, 1);
	LEAVE();
}

static void jumped(void)
{
	volatile int before;

	ENTER();
	before = depth;
	if (setjmp(env) == 0)
		jump(10);
	depth = before;
	wait_here();
	LEAVE();
}

/* Threads, of the library's and of the kernel's making. */

static void *thread_main(void *arg)
{
	if (arg != NULL)
		recurse(5);
	else
		variadic(3, 1, 2, 3);
	AFTER_CALL();
	return NULL;
}

static void threads(void)
{
	pthread_attr_t attr;
	pthread_t t[4];

	ENTER();
	n_expected = 4;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 20);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], &attr, thread_main, (void *)(i & 1));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	LEAVE();
}

/* Forever through everything that does not wait, for stops anywhere. */

static int compare_only(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

static void on_usr1(int sig)
{
	sink += (unsigned long)sig;
}

static NOINLINE unsigned long sum_of(int n, ...)
{
	unsigned long sum = 0;
	va_list list;

	va_start(list, n);
	while (n-- > 0)
		sum += (unsigned long)va_arg(list, int);
	va_end(list);
	return sum;
}

static NOINLINE unsigned long with_room(int n)
{
	volatile char variable[n + 1];
	volatile char *room = alloca((size_t)n + 16);
	__attribute__((aligned(64))) volatile char aligned[64];

	variable[n] = 1;
	room[n] = 2;
	aligned[n & 63] = 3;
	return (unsigned long)(variable[n] + room[n] + aligned[n & 63]) +
	       sum_of(3, n, 2, 1);
}

static NOINLINE unsigned long tail_of(int n)
{
	return n & 1 ? with_room(n) : sum_of(2, n, n);
}

static void work(void)
{
	struct sigaction sa = {.sa_handler = on_usr1};

	sigaction(SIGUSR1, &sa, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (int i = 0;; i++) {
		char text[128] = "a zoo of programs";
		struct timespec t;

		qsort(text, strlen(text), 1, compare_only);
		sink += tail_of(i % 100);
		snprintf(text, sizeof(text), "%d %f %s", i, (double)i, "zoo");
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (setjmp(env) == 0)
			longjmp(env, 1);
		if (i % 64 == 0) {
			raise(SIGUSR1);
			free(malloc((size_t)i % 5000));
#ifndef ZOO_NO_CONTEXT
			getcontext(&there);
#endif
		}
		hot_and_cold(2);
	}
}

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
	{"coroutine", coroutine},
	{"frame_pointer", frame_pointer},
	{"no_frame_pointer", no_frame_pointer},
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
