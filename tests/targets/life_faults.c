/*
 * Signals that a thread brings on itself, while it is stopped for samples at
 * any moment: faults keep their siginfo and happen once, a single step is one
 * instruction.
 *
 * Usage: life_faults N. Each fault N times, by two threads, on a stack of its
 * own; beside them a thread that calculates.
 */
#include "filter.h"
#include "life.h"

#include <setjmp.h>

#define FAULT_THREADS 2

#if defined(__x86_64__)
#define TRAP_FLAG 0x100
#endif

static long rounds;

/* What the thread's next fault has to be; the handler compares. */
static _Thread_local struct {
	int signal, code;
	void *address;
	long n;
} expected;
static _Thread_local sigjmp_buf after;
static _Thread_local volatile long steps;

static void on_fault(int signal, siginfo_t *info, void *unused)
{
	(void)unused;
	if (signal != expected.signal || info->si_signo != signal ||
	    info->si_code != expected.code ||
	    (expected.address != NULL && info->si_addr != expected.address))
		wrong("signal %d, code %d, address %p for %d, %d, %p", signal,
		      info->si_code, info->si_addr, expected.signal,
		      expected.code, expected.address);
	if (!on_altstack(&signal))
		wrong("signal %d: on the wrong stack", signal);
	expected.n++;
	siglongjmp(after, 1);
}

static void expect(int signal, int code, void *address)
{
	expected.signal = signal;
	expected.code = code;
	expected.address = address;
}

static char *map(int protection, size_t size)
{
	char *p = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	must(p != MAP_FAILED, "mmap");
	return p;
}

static void segv_not_mapped(uint64_t random)
{
	/* Nothing is ever mapped there. */
	char *p = (char *)(uintptr_t)(4096 + random % 4096);

	expect(SIGSEGV, SEGV_MAPERR, p);
	*(volatile char *)p = 1;
}

static void segv_protected(uint64_t random)
{
	static _Thread_local char *page;

	if (page == NULL)
		page = map(PROT_READ, 4096);
	expect(SIGSEGV, SEGV_ACCERR, page + random % 4096);
	*(volatile char *)(page + random % 4096) = 1;
}

static void bus_beyond_the_file(uint64_t random)
{
	static _Thread_local char *page;
	int fd;

	if (page == NULL) {
		fd = (int)syscall(SYS_memfd_create, "empty", 0);
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
		must(page != MAP_FAILED, "mmap");
	}
	expect(SIGBUS, BUS_ADRERR, page + random % 4096);
	*(volatile char *)(page + random % 4096) = 1;
}

#if defined(__x86_64__)
static __attribute__((noipa)) void divide_by_zero(uint64_t random)
{
	extern char division[];

	expect(SIGFPE, FPE_INTDIV, division);
	__asm__ volatile("division: divl %k0" : : "r"(0), "a"(random), "d"(0));
}

static __attribute__((noipa)) void illegal(uint64_t random)
{
	extern char no_instruction[];

	(void)random;
	expect(SIGILL, ILL_ILLOPN, no_instruction);
	__asm__ volatile("no_instruction: ud2");
}

static void breakpoint(uint64_t random)
{
	(void)random;
	expect(SIGTRAP, SI_KERNEL, NULL);
	__asm__ volatile("int3");
}

static void not_canonical(uint64_t random)
{
	/* A general protection fault: the kernel does not tell the address. */
	char *p = (char *)(UINT64_C(1) << 62 | random % 4096);

	expect(SIGSEGV, SI_KERNEL, NULL);
	*(volatile char *)p = 1;
}
#endif

static void call_forbidden(uint64_t random)
{
	expect(SIGSYS, 1 /* SYS_SECCOMP */, NULL);
	(void)syscall(SYS_getppid, random);
}

static const struct {
	const char *name;
	void (*bring_on)(uint64_t random);
} faults[] = {
	{"SIGSEGV, not mapped", segv_not_mapped},
	{"SIGSEGV, protected", segv_protected},
	{"SIGBUS, beyond the file", bus_beyond_the_file},
#if defined(__x86_64__)
	{"SIGFPE, division by zero", divide_by_zero},
	{"SIGILL", illegal},
	{"SIGTRAP, int3", breakpoint},
	{"SIGSEGV, no address at all", not_canonical},
#endif
	{"SIGSYS, of a filter", call_forbidden},
};

#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static atomic_ulong happened[FAULTS];

static void *bring_on_faults(void *arg)
{
	static _Thread_local uint64_t seed;

	seed = (uintptr_t)arg * 2 + 1;
	take_altstack();
	/* getppid is trapped: the other threads have their rights. */
	must(FILTER_INSTALL(0, FILTER_CALL(SYS_getppid, SECCOMP_RET_TRAP)),
	     "seccomp");
	for (size_t i = 0; i < FAULTS; i++) {
		volatile size_t which = i;

		for (volatile long n = 0; n < rounds; n = n + 1) {
			run_for(draw(&seed) % 20000);
			if (sigsetjmp(after, 1) == 0) {
				faults[which].bring_on(draw(&seed));
				wrong("%s: nothing happens",
				      faults[which].name);
			}
		}
		atomic_fetch_add(&happened[which], (unsigned long)expected.n);
		expected.n = 0;
	}
	return NULL;
}

#if defined(__x86_64__)
static void on_step(int signal, siginfo_t *info, void *unused)
{
	(void)unused;
	if (signal != SIGTRAP || info->si_code != TRAP_TRACE)
		wrong("a step with code %d", info->si_code);
	steps = steps + 1;
}

/* Instructions with the trap flag set: each is a SIGTRAP of its own. */
static long step_through(void)
{
	steps = 0;
	/* Below what the compiler may have put under the stack pointer. */
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "pushfq\n\t"
			 "orq %0, (%%rsp)\n\t"
			 "popfq\n\t"
			 "mov $100, %%ecx\n"
			 "3:\n\t"
			 "dec %%ecx\n\t"
			 "jnz 3b\n\t"
			 "pushfq\n\t"
			 "andq %1, (%%rsp)\n\t"
			 "popfq\n\t"
			 "lea 128(%%rsp), %%rsp"
			 :
			 : "i"(TRAP_FLAG), "i"(~TRAP_FLAG)
			 : "rcx", "memory", "cc");
	return steps;
}

static void take_steps(void)
{
	long first = 0;

	handle_info(SIGTRAP, on_step, 0);
	for (long n = 0; n < rounds / 4; n++) {
		long count = step_through();

		first = n == 0 ? count : first;
		if (count != first)
			wrong("%ld steps, then %ld", first, count);
	}
	printf("steps %ld\n", first);
}
#endif

int main(int argc, char **argv)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE,
				      SIGILL,  SIGSYS, SIGTRAP};
	pthread_t threads[FAULT_THREADS], busy;

	if (argc != 2)
		return 2;
	rounds = strtol(argv[1], NULL, 10);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		handle_info(signals[i], on_fault, SA_ONSTACK);
	begin();
	busy = start(calculate, NULL);
	for (size_t i = 0; i < FAULT_THREADS; i++)
		threads[i] = start(bring_on_faults, (void *)(i + 1));
	for (size_t i = 0; i < FAULT_THREADS; i++)
		join(threads[i]);
	for (size_t i = 0; i < FAULTS; i++) {
		printf("%s: %lu\n", faults[i].name, atomic_load(&happened[i]));
		if (happened[i] != (unsigned long)(rounds * FAULT_THREADS))
			wrong("%s: %lu", faults[i].name, happened[i]);
	}
#if defined(__x86_64__)
	take_steps();
#endif
	atomic_store(&ending, true);
	join(busy);
	return finish();
}
