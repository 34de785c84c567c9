/*
 * Works on stacks that are not the thread's own, and stays below main the whole
 * time: a profiler that copies the right bytes sees main in every stack.
 *
 *   deep KB         one second stack, at its top and KB below it in turn
 *   alternate N     N second stacks in turn, 10 KB deep on each
 *   signal KB       a handler on a signal stack, KB deep on the thread's own
 *   asleep N KB     N threads in such a handler each, where they sleep
 *   frame           one frame of 540 KB on the thread's own stack
 *   own A L N B     on the thread's own stack, from the root on: small frames of
 *                   up to A KB, N frames of L KB each, small ones of up to B KB.
 *                   A and B go up and down. Of L < 0 nothing is touched.
 *   own-thread ...  the same on that of another thread
 *   coroutines N    N coroutines of makecontext(3) in turn, a little on each
 *   preempted       a coroutine that 5,000 signals a second interrupt; their
 *                   handler, which does nothing, has a signal stack
 *   exec            signal 0, and the same again as another program
 *
 * The program works until it is killed. "ready PID" says that it begins.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "target.h"

#define NOINLINE __attribute__((noinline, noclone))

#define STACK_BYTES (1024 * 1024)
#define SMALL_BYTES (64 * 1024)
#define SMALL_DEPTH (10 * 1024)

static volatile unsigned long sink;

/* Some tenths of a millisecond of processor time. */
static NOINLINE void work(void)
{
	for (int i = 0; i < 200000; i++)
		sink += (unsigned long)i;
}

/* work() in so many bytes of frames. */
static NOINLINE void descend(long bytes)
{
	volatile char frame[1024];

	frame[0] = (char)bytes;
	if (bytes > 0)
		descend(bytes - (long)sizeof(frame));
	else
		work();
	frame[1] = frame[0];
}

#if defined(__x86_64__)
/* Calls function(argument) on the stack that ends at top. */
void on_stack(void *top, void (*function)(long), long argument);
__asm__(".text\n"
	".globl on_stack\n"
	".type on_stack, @function\n"
	"on_stack:\n"
	".cfi_startproc\n"
	"	pushq %rbp\n"
	".cfi_adjust_cfa_offset 8\n"
	".cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	".cfi_def_cfa_register %rbp\n"
	"	movq %rdi, %rsp\n"
	"	movq %rdx, %rdi\n"
	"	call *%rsi\n"
	"	movq %rbp, %rsp\n"
	".cfi_def_cfa_register %rsp\n"
	"	popq %rbp\n"
	".cfi_adjust_cfa_offset -8\n"
	".cfi_restore %rbp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size on_stack, . - on_stack\n");
#else
static void on_stack(void *top, void (*function)(long), long argument)
{
	(void)top;
	function(argument);
}
#endif

static char *new_stack(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		exit(EXIT_FAILURE);
	return p;
}

static NOINLINE void deep(long bytes)
{
	char *top = new_stack(STACK_BYTES) + STACK_BYTES;

	ready(getpid());
	for (;;) {
		/* The first hint is taken at the top. */
		for (int i = 0; i < 200; i++)
			on_stack(top, descend, 0);
		for (int i = 0; i < 200; i++)
			on_stack(top, descend, bytes);
	}
}

static NOINLINE void alternate(long n)
{
	char **tops = calloc((size_t)n, sizeof(*tops));

	for (long i = 0; i < n; i++)
		tops[i] = new_stack(SMALL_BYTES) + SMALL_BYTES;
	ready(getpid());
	for (;;)
		for (long i = 0; i < n; i++)
			on_stack(tops[i], descend, SMALL_DEPTH);
}

static void on_signal(int sig)
{
	(void)sig;
	descend(SMALL_DEPTH);
}

static NOINLINE void raise_at(long bytes)
{
	volatile char frame[8192];

	frame[0] = (char)bytes;
	if (bytes > 0)
		raise_at(bytes - (long)sizeof(frame));
	else
		(void)raise(SIGUSR1);
	frame[1] = frame[0];
}

static NOINLINE void by_signal(long bytes, uint64_t until_ns)
{
	const stack_t stack = {.ss_sp = new_stack(SMALL_BYTES), .ss_size = SMALL_BYTES};

	(void)sigaltstack(&stack, NULL);
	handle(SIGUSR1, on_signal, SA_ONSTACK);
	ready(getpid());
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until_ns)
		raise_at(bytes);
}

static pthread_barrier_t all_in_handlers;

static void on_signal_asleep(int sig)
{
	static atomic_uint sleepers;
	/* If all woke at once, a first look could find most of them awake. */
	const unsigned int ms = 20 + atomic_fetch_add(&sleepers, 1) % 20;
	const struct timespec t = {.tv_nsec = ms * 1000L * 1000};

	(void)sig;
	(void)pthread_barrier_wait(&all_in_handlers);
	for (;;)
		(void)nanosleep(&t, NULL);
}

static NOINLINE void *asleep(void *bytes)
{
	const stack_t stack = {.ss_sp = new_stack(SMALL_BYTES), .ss_size = SMALL_BYTES};

	(void)sigaltstack(&stack, NULL);
	raise_at((long)bytes);
	return NULL;
}

static NOINLINE void threads_asleep(unsigned int n, long bytes)
{
	(void)pthread_barrier_init(&all_in_handlers, NULL, n + 1);
	handle(SIGUSR1, on_signal_asleep, SA_ONSTACK);
	for (unsigned int i = 0; i < n; i++)
		(void)start(asleep, (void *)bytes);
	(void)pthread_barrier_wait(&all_in_handlers);
	ready(getpid());
	for (;;)
		(void)sleep(1);
}

static NOINLINE void one_frame(void)
{
	volatile char frame[540 * 1024];

	for (size_t i = 0; i < sizeof(frame); i += 4096)
		frame[i] = 1;
	ready(getpid());
	for (;;)
		descend(SMALL_DEPTH);
}

struct own {
	long above, large, times, below;
};

/* As descend(), in so few frames that none of 2 MB is too many. */
static NOINLINE void own_descend(long bytes)
{
	volatile char frame[8192];

	frame[0] = (char)bytes;
	if (bytes > 0)
		own_descend(bytes - (long)sizeof(frame));
	else
		work();
	frame[1] = frame[0];
}

static NOINLINE void own_below(const struct own *o)
{
	for (long i = 0; i <= 4; i++)
		own_descend(o->below * i / 4);
}

static NOINLINE void own_large(const struct own *o, long times)
{
	const size_t size = (size_t)labs(o->large);
	volatile char *frame;

	if (times == 0) {
		own_below(o);
		return;
	}
	frame = __builtin_alloca(size + 64);
	for (size_t i = 0; i < size && o->large > 0; i += 4096)
		frame[i] = 1;
	own_large(o, times - 1);
	frame[0] = 1;
}

static NOINLINE void own_above(const struct own *o, long bytes)
{
	volatile char frame[8192];

	frame[0] = (char)bytes;
	if (bytes > 0)
		own_above(o, bytes - (long)sizeof(frame));
	else
		own_large(o, o->times);
	frame[1] = frame[0];
}

static NOINLINE void *own(void *argument)
{
	const struct own *o = argument;

	ready(getpid());
	for (;;)
		for (long i = 0; i <= 4; i++)
			own_above(o, o->above * i / 4);
	return NULL;
}

/* On a stack of 8 MB that is no main thread's. */
static void own_thread(struct own *o)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 8 * STACK_BYTES);
	if (pthread_create(&thread, &attr, own, o) == 0)
		(void)pthread_join(thread, NULL);
}

static ucontext_t back;
static ucontext_t *coroutines;

static void coroutine(int n)
{
	for (;;) {
		descend(1024);
		(void)swapcontext(&coroutines[n], &back);
	}
}

static NOINLINE void by_coroutines(long n)
{
	coroutines = calloc((size_t)n, sizeof(*coroutines));
	for (long i = 0; i < n; i++) {
		(void)getcontext(&coroutines[i]);
		coroutines[i].uc_stack.ss_sp = new_stack(SMALL_BYTES);
		coroutines[i].uc_stack.ss_size = SMALL_BYTES;
		coroutines[i].uc_link = &back;
		makecontext(&coroutines[i], (void (*)(void))coroutine, 1, (int)i);
	}
	ready(getpid());
	for (;;)
		for (long i = 0; i < n; i++)
			(void)swapcontext(&back, &coroutines[i]);
}

static void on_urgent(int sig)
{
	(void)sig;
}

static NOINLINE void *preempt(void *main_thread)
{
	const struct timespec t = {.tv_nsec = 200 * 1000};

	for (;;) {
		(void)nanosleep(&t, NULL);
		(void)pthread_kill(*(pthread_t *)main_thread, SIGURG);
	}
	return NULL;
}

static NOINLINE void preempted(void)
{
	const stack_t stack = {.ss_sp = new_stack(SMALL_BYTES), .ss_size = SMALL_BYTES};
	pthread_t self = pthread_self();

	(void)sigaltstack(&stack, NULL);
	handle(SIGURG, on_urgent, SA_ONSTACK);
	(void)start(preempt, &self);
	by_coroutines(1);
}

/* Processor time before the exec. */
#define EXEC_NS UINT64_C(1000000000)

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	const long number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

	if (strcmp(mode, "deep") == 0)
		deep(number * 1024);
	else if (strcmp(mode, "alternate") == 0)
		alternate(number);
	else if (strcmp(mode, "signal") == 0)
		by_signal(number * 1024, UINT64_MAX);
	else if (strcmp(mode, "asleep") == 0 && argc == 4)
		threads_asleep((unsigned int)number, strtol(argv[3], NULL, 10) * 1024);
	else if (strcmp(mode, "frame") == 0)
		one_frame();
	else if (strncmp(mode, "own", 3) == 0 && argc == 6) {
		struct own o = {
			.above = number * 1024,
			.large = strtol(argv[3], NULL, 10) * 1024,
			.times = strtol(argv[4], NULL, 10),
			.below = strtol(argv[5], NULL, 10) * 1024,
		};

		if (strcmp(mode, "own-thread") == 0)
			own_thread(&o);
		else
			(void)own(&o);
	} else if (strcmp(mode, "coroutines") == 0)
		by_coroutines(number);
	else if (strcmp(mode, "preempted") == 0)
		preempted();
	else if (strcmp(mode, "exec") == 0) {
		by_signal(0, EXEC_NS);
		(void)execl("/proc/self/exe", "second_stacks", "signal", "0", (char *)NULL);
	}
	return EXIT_FAILURE;
}
