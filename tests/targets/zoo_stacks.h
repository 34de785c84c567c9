/*
 * Signals, stacks of their own, jumps and threads: a part of zoo.h.
 */

/* Signals. */

/* PC_STEP: what unwind.h adds to the place that a signal interrupted. */
#if defined(__x86_64__)
#define ILLEGAL "ud2"
#define PC_STEP 1
#define PUSH_AND_POP                 \
	"	pushq %rbx\n"              \
	".cfi_adjust_cfa_offset 8\n" \
	"	popq %rbx\n"               \
	".cfi_adjust_cfa_offset -8\n"
#else
#define ILLEGAL "udf #0"
#define PC_STEP 4
#define PUSH_AND_POP                  \
	"	str x19, [sp, -16]!\n"      \
	".cfi_adjust_cfa_offset 16\n" \
	"	ldr x19, [sp], 16\n"        \
	".cfi_adjust_cfa_offset -16\n"
#endif

static void on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig, (void)info;
	/* The trampoline that it returns to is no function of this program. */
	push(context_pc(u) + PC_STEP);
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
	push(context_pc(u) + PC_STEP);
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
	__asm__ volatile(ILLEGAL);
	LEAVE();
}

/* An address that cannot be called: nothing of the caller's frame is there. */
static NOINLINE void call(void (*function)(void))
{
	ENTER();
	function();
	LEAVE();
}

/*
 * A function whose first instruction faults. Global, because GNU ld for aarch64 makes a wrong entry
 * for a local symbol in the global offset table.
 */
__asm__(".text\n"
	".globl zoo_faults_first\n"
	".type zoo_faults_first, @function\n"
	"zoo_faults_first:\n"
	".cfi_startproc\n"
	"	" ILLEGAL "\n" PUSH_AND_POP "	ret\n"
	".cfi_endproc\n"
	".size zoo_faults_first, . - zoo_faults_first\n");
void zoo_faults_first(void);

static void on_first(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig, (void)info;
	push(context_return(u));
	push(context_pc(u) + PC_STEP);
	wait_here();
	AFTER_CALL();
	depth--;
}

static void signal_first(void)
{
	ENTER();
	handle(SIGILL, 0, (void *)on_first);
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
