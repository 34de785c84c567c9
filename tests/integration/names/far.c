/* The linker puts the section .far more than 4 GiB above the program's first segment. */
#include <stdio.h>

static volatile unsigned long sink;

__attribute__((noinline, section(".far"))) static void far_away(void)
{
	for (unsigned long i = 0; i < 2000000; i++)
		sink = sink * 31 + i;
}

static void (*volatile function)(void) = far_away;

int main(void)
{
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;)
		function();
}
