/*
 * More that the zoo_* targets can do, with glibc on x86-64: part of zoo.h where
 * ZOO_MORE is defined. A line "end REASON" says that a stack cannot be told to
 * its root, and why; then the addresses are those up to there.
 */

static void expect_end(const char *reason)
{
	printf("end %s\n", reason);
	fflush(stdout);
}

/* A handler on a stack of its own: what it interrupted is on another. */
static NOINLINE void take_alternate(void *at)
{
	const stack_t stack = {.ss_sp = at, .ss_size = STACK_BYTES};

	sigaltstack(&stack, NULL);
	handle(SIGSEGV, SA_ONSTACK, (void *)on_signal);
}

static void alternate(void)
{
	ENTER();
	take_alternate(malloc(STACK_BYTES));
	fault();
	LEAVE();
}

/* A handler there is interrupted by the next one, there, too. */
static void alternate_nested(void)
{
	ENTER();
	take_alternate(malloc(STACK_BYTES));
	handle(SIGILL, SA_ONSTACK, (void *)on_outer);
	__asm__ volatile("ud2");
	LEAVE();
}

/* It lies on the stack that it is another one to. */
static void alternate_within(void)
{
	char *at = alloca(STACK_BYTES);

	ENTER();
	take_alternate(at);
	fault();
	LEAVE();
}

static void *on_thread(void *arg)
{
	take_alternate(arg);
	fault();
	AFTER_CALL();
	return NULL;
}

/* Of a thread's own stack there is less than in the main thread's. */
static void alternate_thread(void)
{
	pthread_t t;

	ENTER();
	pthread_create(&t, NULL, on_thread, malloc(STACK_BYTES));
	pthread_join(t, NULL);
	LEAVE();
}

/*
 * A switch of stacks by hand, as libraries of coroutines have it. A new stack
 * holds what the switch pops, and the start of the trampoline as its return
 * address.
 */
__asm__(".text\n"
	".type zoo_switch, @function\n"
	"zoo_switch:\n"
	".cfi_startproc\n"
	"	pushq %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset rbp, 0\n"
	"	pushq %rbx\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_rel_offset rbx, 0\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %rbx\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore rbx\n"
	"	popq %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore rbp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size zoo_switch, . - zoo_switch\n"
	"	.p2align 4\n"
	".type zoo_trampoline, @function\n"
	"zoo_trampoline:\n"
	".cfi_startproc\n"
	".cfi_undefined rip\n"
	"	call *%rbx\n"
	"	hlt\n"
	".cfi_endproc\n"
	".size zoo_trampoline, . - zoo_trampoline\n");
void zoo_switch(void **save, void *stack);
void zoo_trampoline(void);

/* One that returns to code without CFI that ends the program, as Boost's. */
__asm__(".text\n"
	".type zoo_ends, @function\n"
	"zoo_ends:\n"
	"	nop\n"
	"zoo_end_it:\n"
	"	xorl %edi, %edi\n"
	"	call _exit\n"
	"	hlt\n"
	".size zoo_ends, . - zoo_ends\n");
extern const char zoo_end_it[];

static void *stacks[2];

static void in_coroutine(void)
{
	ENTER();
	variadic(3, 1, 2, 3);
	LEAVE();
}

static void coroutine(void)
{
	uintptr_t *top;

	top = (uintptr_t *)((char *)malloc(STACK_BYTES) + STACK_BYTES) - 2;
	*--top = (uintptr_t)zoo_trampoline;
	*--top = 0; /* rbp */
	*--top = (uintptr_t)in_coroutine; /* rbx */
	depth = 0;
	zoo_switch(&stacks[0], top);
	AFTER_CALL();
}

static void ending_coroutine(void)
{
	uintptr_t *top;

	top = (uintptr_t *)((char *)malloc(STACK_BYTES) + STACK_BYTES) - 2;
	/* Left over from before: no caller of it. */
	top[1] = (uintptr_t)__builtin_return_address(0);
	*top = (uintptr_t)zoo_end_it;
	*--top = (uintptr_t)in_coroutine;
	*--top = (uintptr_t)zoo_end_it; /* rbp */
	*--top = 0;			/* rbx */
	depth = 0;
	zoo_switch(&stacks[0], top);
	AFTER_CALL();
}

/*
 * gcc's way out of a function that aligns its stack, with gcc's CFI: that the
 * caller's frame pointer is where the register points to, though it is in the
 * register again. It faults there.
 */
__asm__(".text\n"
	".type zoo_realigned, @function\n"
	"zoo_realigned:\n"
	".cfi_startproc\n"
	"	leaq 8(%rsp), %r10\n"
	".cfi_def_cfa r10, 0\n"
	"	andq $-64, %rsp\n"
	"	pushq -8(%r10)\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	".cfi_escape 0x10, 6, 2, 0x76, 0\n" /* rbp at rbp */
	"	popq %rbp\n"
	"	movl $0, 0\n"
	"	leaq -8(%r10), %rsp\n"
	".cfi_def_cfa rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size zoo_realigned, . - zoo_realigned\n");
void zoo_realigned(void);

static void on_realigned(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig, (void)info;
	push(((uintptr_t *)u->uc_mcontext.gregs[REG_R10])[-1]);
	push(context_pc(u) + PC_STEP);
	wait_here();
	AFTER_CALL();
	depth--;
}

/* Each of these has a frame pointer, and is lost without the one below. */
static NOINLINE void framed_array(int n)
{
	volatile char array[n + 1];

	ENTER();
	array[n] = 1;
	if (n > 0)
		framed_array(n - 1);
	else
		zoo_realigned();
	LEAVE();
}

static void realigned(void)
{
	ENTER();
	handle(SIGSEGV, 0, (void *)on_realigned);
	framed_array(3);
	LEAVE();
}

/* Hand-written code without CFI. */
__asm__(".text\n"
	".type zoo_with_frame, @function\n"
	"zoo_with_frame:\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	subq $64, %rsp\n"
	"	call *%rdi\n"
	"	leave\n"
	"	ret\n"
	".size zoo_with_frame, . - zoo_with_frame\n"
	".type zoo_without_frame, @function\n"
	"zoo_without_frame:\n"
	"	pushq %rbp\n"
	"	subq $40, %rsp\n"
	"	movl $1, %ebp\n"
	"	call *%rdi\n"
	"	leaq 40(%rsp), %rsp\n"
	"	popq %rbp\n"
	"	ret\n"
	".size zoo_without_frame, . - zoo_without_frame\n"
	/* One that only knows while it runs how large its frame is. */
	".type zoo_varies, @function\n"
	"zoo_varies:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	movq %rsp, %rbx\n"
	"	andq $-64, %rsp\n"
	"	movl $1, %ebp\n"
	"	call *%rdi\n"
	"	movq %rbx, %rsp\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size zoo_varies, . - zoo_varies\n"
	/* The same, but that it says in a plainer way how it returns. */
	".type zoo_way_out, @function\n"
	"zoo_way_out:\n"
	"	pushq %rbp\n"
	"	subq $40, %rsp\n"
	"	movl $1, %ebp\n"
	"	call *%rdi\n"
	"	addq $40, %rsp\n"
	"	popq %rbp\n"
	"	ret\n"
	".size zoo_way_out, . - zoo_way_out\n"
	/*
	 * One that ends with its call; what stands behind it is another
	 * function, whose return address would be another word, too.
	 */
	".type zoo_never_back, @function\n"
	"zoo_never_back:\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	leaq zoo_never_back(%rip), %rax\n"
	"	pushq %rax\n"
	"	pushq %rax\n"
	"	call *%rdi\n"
	".size zoo_never_back, . - zoo_never_back\n"
	".type zoo_behind, @function\n"
	"zoo_behind:\n"
	"	popq %rax\n"
	"	ret\n"
	".size zoo_behind, . - zoo_behind\n");
void zoo_with_frame(void (*function)(void));
void zoo_without_frame(void (*function)(void));
void zoo_varies(void (*function)(void));
void zoo_way_out(void (*function)(void));
void zoo_never_back(void (*function)(void));

static void below_assembly(void)
{
	ENTER();
	wait_here();
	LEAVE();
}

static void frame_pointer(void)
{
	ENTER();
	zoo_with_frame(below_assembly);
	LEAVE();
}

static void no_frame_pointer(void)
{
	ENTER();
	zoo_without_frame(below_assembly);
	LEAVE();
}

static void frame_varies(void)
{
	ENTER();
	expect_end("no_cfi unknown_register");
	depth = 0;
	zoo_varies(below_assembly);
	LEAVE();
}

static void way_out(void)
{
	ENTER();
	zoo_way_out(below_assembly);
	LEAVE();
}

static void never_back(void)
{
	ENTER();
	zoo_never_back(below_assembly);
	LEAVE();
}

/*
 * What Go's runtime does when it leaves a goroutine's stack for the scheduler's,
 * under its names: above where that begins stands what was there before.
 */
__asm__(".section .go.buildinfo,\"aw\"\n"
	"	.quad 0\n"
	".text\n"
	".macro zoo_change_stack name\n"
	".type \\name, @function\n"
	"\\name:\n"
	".cfi_startproc\n"
	"	movq %rsi, %rsp\n"
	"	call *%rdi\n"
	"	hlt\n"
	".cfi_endproc\n"
	".size \\name, . - \\name\n"
	".endm\n"
	/* It looks at a clock on the scheduler's stack, on which it is already. */
	".type runtime.nanotime1, @function\n"
	"runtime.nanotime1:\n"
	".cfi_startproc\n"
	"	subq $24, %rsp\n"
	".cfi_def_cfa_offset 32\n"
	"	movq %rbp, 16(%rsp)\n"
	"	leaq 16(%rsp), %rbp\n"
	"	movq %rsp, %r12\n"
	"	subq $4096, %rsp\n"
	"	andq $~15, %rsp\n"
	"	movq %rdi, %rax\n"
	"	movq 8(%rbp), %rdi\n"
	"	call *%rax\n"
	"	hlt\n"
	".cfi_endproc\n"
	".size runtime.nanotime1, . - runtime.nanotime1\n"
	"	zoo_change_stack runtime.mcall\n"
	"	zoo_change_stack runtime.systemstack.abi0\n");
void mcall(void (*function)(void), void *stack) __asm__("runtime.mcall");
void systemstack(void (*function)(void),
		 void *stack) __asm__("runtime.systemstack.abi0");

void nanotime1(void (*function)(uintptr_t)) __asm__("runtime.nanotime1");

static void on_scheduler(void)
{
	ENTER();
	sink++; /* else the compiler takes another function like this for it */
	wait_here();
	LEAVE();
}

/* On top of it stand two return addresses, which look like two callers. */
static void *scheduler_stack(void)
{
	uintptr_t *words = calloc(1, STACK_BYTES);
	uintptr_t *top = words + STACK_BYTES / sizeof(*words) / 2;

	top[0] = top[1] = (uintptr_t)__builtin_return_address(0);
	return top;
}

static void go_mcall(void)
{
	void *stack = scheduler_stack();

	ENTER();
	depth = 0;
	mcall(on_scheduler, stack);
	AFTER_CALL();
}

static void go_systemstack(void)
{
	void *stack = scheduler_stack();

	ENTER();
	expect_end("unreadable");
	depth = 0;
	systemstack(on_scheduler, stack);
	AFTER_CALL();
}

static void on_clock(uintptr_t caller)
{
	push(caller);
	ENTER();
	wait_here();
	LEAVE();
}

static void go_nanotime(void)
{
	ENTER();
	nanotime1(on_clock);
	LEAVE();
}

/* A thread by the system call, on memory of its own. */

static int in_clone(void *arg)
{
	(void)arg;
	depth = 0;
	ENTER();
	wait_here();
	LEAVE();
	return 0;
}

static void cloned(void)
{
	char *stack = malloc(STACK_BYTES);

	ENTER();
	clone(in_clone, stack + STACK_BYTES,
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
	      NULL);
	/* The thread's variables are this one's, too: it waits without them. */
	for (;;)
		pause();
}
