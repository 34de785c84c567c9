/*
 * What the programs life_*.c have in common. Each does something whose outcome
 * POSIX and Linux fix, checks it, and says it in lines that are the same every
 * time: tests/integration/life.py compares those of a run without the daemon
 * with those of runs under it.
 *
 * It says "ready PID", begins with the first line of its input, and ends with
 * status 0 if nothing was wrong.
 */
#ifndef TESTS_TARGETS_LIFE_H
#define TESTS_TARGETS_LIFE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "blocked.h"
#include "target.h"

/* What does not come within this time does not come. */
#define PATIENCE_S 300

/* Wrong things are told, but not without end. */
#define WRONG_MAX 20

static atomic_uint n_wrong;

__attribute__((format(printf, 1, 2))) static inline void
wrong(const char *format, ...)
{
	va_list arguments;

	if (atomic_fetch_add(&n_wrong, 1) >= WRONG_MAX)
		return;
	va_start(arguments, format);
	fputs("wrong: ", stderr);
	vfprintf(stderr, format, arguments);
	fputs("\n", stderr);
	va_end(arguments);
}

__attribute__((noreturn)) static inline void give_up(const char *what)
{
	fprintf(stderr, "wrong: %s (%s)\n", what, strerror(errno));
	_exit(2);
}

static inline void must(bool condition, const char *what)
{
	if (!condition)
		give_up(what);
}

/* Called in a loop that waits: ends the program when it was called too long. */
static inline void patience(uint64_t since_ns, const char *what)
{
	if (now_ns() - since_ns > PATIENCE_S * UINT64_C(1000000000))
		give_up(what);
	(void)sched_yield();
}

/* xorshift64: the same numbers for the same seed, everywhere. */
static inline uint64_t draw(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A thread that calculates until the program ends, or says that it is to end. */
static atomic_bool ending;

static inline void *calculate(void *unused)
{
	while (!atomic_load(&ending))
		run_for(1000000);
	return unused;
}

/* With siginfo_t. */
static inline void handle_info(int signal,
			       void (*handler)(int, siginfo_t *, void *),
			       int flags)
{
	const struct sigaction action = {.sa_sigaction = handler,
					 .sa_flags = SA_SIGINFO | flags};

	must(sigaction(signal, &action, NULL) == 0, "sigaction");
}

/* A stack for handlers with SA_ONSTACK; NULL: this thread has none. */
#define ALTSTACK 65536

static _Thread_local char *altstack;

static inline void take_altstack(void)
{
	stack_t stack = {.ss_size = ALTSTACK};

	stack.ss_sp = altstack = malloc(ALTSTACK);
	must(altstack != NULL && sigaltstack(&stack, NULL) == 0, "sigaltstack");
}

static inline bool on_altstack(const void *here)
{
	const char *p = here;

	return altstack != NULL && p >= altstack && p < altstack + ALTSTACK;
}

/* What a signal, or a stop, does to registers would show. */
static inline void check_registers(int n)
{
	double f = 1.0, g = 1.0;
	uint64_t x = 1, y = 1;

	for (int i = 0; i < n; i++) {
		x = burn(x, 1);
		f = f * 1.0000001 + 0.5;
	}
	for (volatile int i = 0; i < n; i = i + 1) {
		y = burn(y, 1);
		g = g * 1.0000001 + 0.5;
	}
	if (x != y || f < g || f > g)
		wrong("a calculation: %lx, %lx; %f, %f", x, y, f, g);
}

/* With the processes that this one makes from now on. */
static inline void *share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED, "mmap");
	return memory;
}

/* To this thread of this process. */
static inline void send_to(pid_t tid, int signal)
{
	must(syscall(SYS_tgkill, getpid(), tid, signal) == 0, "tgkill");
}

static inline void join(pthread_t thread)
{
	must(pthread_join(thread, NULL) == 0, "pthread_join");
}

/* Says that all is set up, and waits until it is to begin. */
static inline void begin(void)
{
	char byte;

	setvbuf(stdout, NULL, _IOLBF, 0);
	ready(getpid());
	while (read(STDIN_FILENO, &byte, 1) == 1)
		if (byte == '\n')
			return;
	_exit(0);
}

/* The status that main() returns. */
static inline int finish(void)
{
	return n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
