// cflags: -O2
/*
 * Exceptions in flight. Like the targets of zoo.h: prints the return addresses
 * of its functions, "ready", and waits: in a destructor that runs while the
 * stack is unwound, in a handler, in one that throws again, and where nobody
 * catches.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, used))
#define AFTER_CALL() __asm__ volatile("" ::: "memory")
#define HERE() reinterpret_cast<uintptr_t>(__builtin_return_address(0))

static uintptr_t shadow[64];
static int depth;

/* Leaves its place however its function is left. */
struct Entered {
	explicit Entered(uintptr_t address)
	{
		shadow[depth++] = address;
	}
	~Entered()
	{
		depth--;
	}
};

#define ENTER() Entered entered(HERE())

static NOINLINE void wait_here()
{
	char c;

	ENTER();
	printf("stack %ld", syscall(SYS_gettid));
	for (int i = depth; i-- > 0;)
		printf(" %lx", static_cast<unsigned long>(shadow[i]));
	printf("\nready %d\n", static_cast<int>(getpid()));
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) != 0)
		AFTER_CALL();
	/* It may return, for the compiler: else nobody would catch. */
}

struct Waits {
	NOINLINE ~Waits()
	{
		/* Called by a landing pad: that is below its caller's place. */
		ENTER();
		wait_here();
		AFTER_CALL();
	}
};

static NOINLINE void throws(int n)
{
	ENTER();
	if (n == 0)
		throw std::runtime_error("thrown");
	throws(n - 1);
	AFTER_CALL();
}

static NOINLINE void cleans_up()
{
	ENTER();
	Waits waits;

	throws(5);
	AFTER_CALL();
}

static NOINLINE void destructor()
{
	ENTER();
	try {
		cleans_up();
	} catch (const std::exception &) {
		AFTER_CALL();
	}
	AFTER_CALL();
}

static NOINLINE void handler()
{
	ENTER();
	try {
		throws(5);
	} catch (const std::exception &) {
		wait_here();
	}
	AFTER_CALL();
}

static NOINLINE void throws_again()
{
	ENTER();
	try {
		throws(5);
	} catch (...) {
		throw;
	}
	AFTER_CALL();
}

static NOINLINE void again()
{
	ENTER();
	try {
		throws_again();
	} catch (const std::exception &) {
		wait_here();
	}
	AFTER_CALL();
}

static void on_terminate()
{
	ENTER();
	wait_here();
	AFTER_CALL();
}

/* Nobody catches: nothing was unwound when that is known. */
static NOINLINE void uncaught()
{
	ENTER();
	std::set_terminate(on_terminate);
	throws(5);
	AFTER_CALL();
}

static NOINLINE void throw_and_catch()
{
	ENTER();
	try {
		throws(5);
	} catch (const std::exception &) {
		AFTER_CALL();
	}
}

static NOINLINE void work()
{
	printf("ready %d\n", static_cast<int>(getpid()));
	fflush(stdout);
	for (;;)
		throw_and_catch();
}

static const struct {
	const char *name;
	void (*run)();
} modes[] = {
	{"destructor", destructor}, {"handler", handler}, {"again", again},
	{"uncaught", uncaught},	    {"work", work},
};

int main(int argc, char **argv)
{
	ENTER();
	for (const auto &m : modes) {
		if (argc > 1 && strcmp(m.name, argv[1]) == 0)
			m.run();
		AFTER_CALL();
	}
	return 2;
}
