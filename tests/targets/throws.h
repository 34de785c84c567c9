/*
 * The body of the throws_* targets: one turn after the other in which an
 * exception is thrown, a destructor runs on its way, and it is caught; and a
 * stack is unwound by force, up to a longjmp. So handlers are installed by
 * _Unwind_RaiseException, _Unwind_Resume and _Unwind_ForcedUnwind. Functions
 * have C's names, for who reads stacks.
 */
#ifndef TESTS_TARGETS_THROWS_H
#define TESTS_TARGETS_THROWS_H

#include <csetjmp>
#include <cstdio>
#include <unistd.h>
#include <unwind.h>

#define FUNCTION extern "C" __attribute__((noinline, used))
/* After a call: keeps it from becoming a jump. */
#define AFTER_CALL() __asm__ volatile("" ::: "memory")

static volatile unsigned long sink;
static jmp_buf back;

FUNCTION void thrower(int n)
{
	if (n >= 0)
		throw n;
	AFTER_CALL();
}

struct Cleans {
	__attribute__((noinline)) ~Cleans()
	{
		sink++;
	}
};

/* Arguments on the stack, and room in the frame. */
FUNCTION void cleaner(int a, int b, int c, int d, int e, int f, int g, int h)
{
	volatile int room[20] = {a, b, c, d, e, f, g, h};
	Cleans cleans;

	thrower(room[7]);
	AFTER_CALL();
}

FUNCTION void catcher()
{
	try {
		cleaner(1, 2, 3, 4, 5, 6, 7, static_cast<int>(sink & 1));
	} catch (int) {
		sink++;
	}
	AFTER_CALL();
}

FUNCTION _Unwind_Reason_Code stop(int, _Unwind_Action action,
				  _Unwind_Exception_Class, _Unwind_Exception *,
				  _Unwind_Context *, void *)
{
	static int n;

	/* Who forces, and who cleans up, twice: before that and after. */
	if ((action & _UA_END_OF_STACK) != 0 || ++n % 4 == 0)
		longjmp(back, 1);
	return _URC_NO_REASON;
}

FUNCTION void forcer()
{
	static _Unwind_Exception exception;

	_Unwind_ForcedUnwind(&exception, stop, nullptr);
	AFTER_CALL();
}

FUNCTION void forced()
{
	Cleans cleans;

	forcer();
	AFTER_CALL();
}

FUNCTION void jumper()
{
	if (setjmp(back) == 0)
		forced();
	AFTER_CALL();
}

FUNCTION void turn()
{
	sink++;
}

int main()
{
	printf("ready %d\n", static_cast<int>(getpid()));
	fflush(stdout);
	for (;;) {
		turn();
		catcher();
		jumper();
	}
}

#endif
