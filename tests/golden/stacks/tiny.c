/*
 * A program without a C library, so small that its executables are kept beside
 * samples of it (record.py makes both). Its stack is always _start, outer,
 * middle, and then, by the first letter of its argument: "run": leaf_run, which
 * calls turn again and again; "lazy": leaf_lazy, which calls others; "wait": leaf_wait, which
 * reads; "signal": leaf_signal, interrupted by a handler that waits; "bare": fixed, which calls a
 * function without CFI that keeps a frame pointer, and waits.
 */
#define NOINLINE __attribute__((noinline, used))
/* Nothing is a tail call where something follows. */
#define AFTER_CALL() __asm__ volatile("" ::: "memory")

#define SIGUSR1	    10
#define SA_RESTORER 0x04000000

struct action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

void restorer(void);
long bare(long (*call)(void));
long outer(const char *what);
void _start(void);

/* The nops: what a C library has in front of a restorer for old unwinders. */
#if defined(__x86_64__)

#define SYS_READ      0
#define SYS_SIGACTION 13
#define SYS_GETPID    39
#define SYS_KILL      62

/*
 * Code without CFI that says by itself how it returns: what lld makes of a call
 * that is bound when it is made first, crti.o's _init, and a function that
 * saves registers.
 */
long plt(long n);
long init(void);
long kept(void);
__asm__(".text\n"
	"slots: .quad 0, resolver, lazy\n"
	"plt0: push slots(%rip)\n"
	"jmp *slots+8(%rip)\n"
	"plt: jmp *slots+16(%rip)\n"
	"lazy: .byte 0x68, 0, 0, 0, 0\n" /* push $0 */
	".byte 0xe9\n"			 /* jmp plt0 */
	".long plt0 - . - 4\n"
	"resolver: .cfi_startproc\n"
	".cfi_def_cfa_offset 24\n"
	"add $16, %rsp\n"
	".cfi_def_cfa_offset 8\n"
	"jmp turn\n"
	".cfi_endproc\n"
	"init: sub $8, %rsp\n"
	"mov slots(%rip), %rax\n"
	"test %rax, %rax\n"
	"je 1f\n"
	"call *%rax\n"
	"1: add $8, %rsp\n"
	"ret\n"
	"nothing: xor %eax, %eax\n"
	"ret\n"
	"kept: push %rbp\n"
	"push %rbx\n"
	"mov $1, %ebp\n"
	"mov $2, %ebx\n"
	"call nothing\n"
	"pop %rbx\n"
	"pop %rbp\n"
	"ret\n"
	".text\n"
	"nop\n"
	"restorer: mov $15, %eax\n"
	"syscall\n"
	"bare: push %rbp\n"
	"mov %rsp, %rbp\n"
	"sub $32, %rsp\n"
	"call *%rdi\n"
	"leave\n"
	"ret\n"
	".globl _start\n"
	"_start: .cfi_startproc\n"
	".cfi_undefined rip\n"
	"xor %ebp, %ebp\n"
	"mov 16(%rsp), %rdi\n"
	"and $-16, %rsp\n"
	"call outer\n"
	"hlt\n"
	".cfi_endproc\n"
	".size _start, . - _start\n");

static inline long system4(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return r;
}

#elif defined(__aarch64__)

/*
 * The word: "$x" is there where bare is. And bare has room above what its frame
 * pointer points to.
 */

#define SYS_READ      63
#define SYS_SIGACTION 134
#define SYS_GETPID    172
#define SYS_KILL      129

__asm__(".text\n"
	"nop\n"
	"restorer: mov x8, #139\n"
	"svc #0\n"
	".word 0\n"
	"bare: paciasp\n"
	"stp x29, x30, [sp, #-48]!\n"
	"mov x29, sp\n"
	"sub sp, sp, #32\n"
	"blr x0\n"
	"add sp, sp, #32\n"
	"ldp x29, x30, [sp], #48\n"
	"autiasp\n"
	"ret\n"
	".globl _start\n"
	"_start: .cfi_startproc\n"
	".cfi_undefined x30\n"
	"mov x29, #0\n"
	"mov x30, #0\n"
	"ldr x0, [sp, #16]\n"
	"bl outer\n"
	"brk #1\n"
	".cfi_endproc\n"
	".size _start, . - _start\n");

static inline long system4(long nr, long a, long b, long c, long d)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
}

#endif

static volatile long sink;

/* Saves registers: its first instructions and its last are worth a sample. */
NOINLINE long turn(long n)
{
	volatile long room[4];

	room[n & 3] = sink;
	AFTER_CALL();
	__asm__ volatile(""
			 : "+r"(n)
			 :
			 : "memory"
#if defined(__x86_64__)
			   ,
			   "rbx", "r12"
#else
			   ,
			   "x19", "x20", "x30"
#endif
	);
	return room[n & 3] + 1;
}

NOINLINE long leaf_run(void)
{
	for (;;)
		sink = turn(sink);
	return sink;
}

#if defined(__x86_64__)
NOINLINE long leaf_lazy(void)
{
	for (;;)
		sink = plt(sink) + init() + kept();
	return sink;
}
#else
#define leaf_lazy leaf_run
#endif

NOINLINE long leaf_wait(void)
{
	char c;

	while (system4(SYS_READ, 0, (long)&c, 1, 0) != 0)
		;
	return c;
}

NOINLINE void handler(int signal)
{
	sink = leaf_wait() + signal;
	AFTER_CALL();
}

NOINLINE long leaf_signal(void)
{
	const struct action action = {handler, SA_RESTORER, restorer, 0};

	system4(SYS_SIGACTION, SIGUSR1, (long)&action, 0, 8);
	system4(SYS_KILL, system4(SYS_GETPID, 0, 0, 0, 0), SIGUSR1, 0, 0);
	return sink;
}

/* Its frame is found from its stack pointer. */
NOINLINE long fixed(void)
{
	volatile long room[4];

	room[1] = bare(leaf_wait);
	AFTER_CALL();
	return room[1];
}

/* Its frame has a size that only its frame pointer knows. */
NOINLINE long middle(long n, char what)
{
	volatile char bytes[n];
	long r;

	bytes[n - 1] = what;
	switch (what) {
	case 'r':
		r = leaf_run();
		break;
	case 'l':
		r = leaf_lazy();
		break;
	case 's':
		r = leaf_signal();
		break;
	case 'b':
		r = fixed();
		break;
	default:
		r = leaf_wait();
	}
	AFTER_CALL();
	return r + bytes[n - 1];
}

NOINLINE long outer(const char *what)
{
	volatile long saved[8];

	saved[3] = what[0];
	sink = middle(saved[3], what[0]);
	AFTER_CALL();
	return saved[3] + sink;
}
