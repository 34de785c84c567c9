/*
 * A loop that calls a tiny function through the PLT, so that many samples are in the stub.
 * With -DLIB the library that has the function. With -DIFUNC the program has it and chooses it at
 * its start. With -DPOINTER the program also takes its address, so that the call goes through
 * .plt.got.
 */
#include <stdio.h>

#ifdef LIB
int tiny(int x);
int tiny(int x)
{
	return x + 1;
}
#else

#ifdef IFUNC
__attribute__((noinline)) static int chosen(int x)
{
	return x + 1;
}

static void *choose(void)
{
	return (void *)chosen;
}
int tiny(int x) __attribute__((ifunc("choose")));
#else
extern int tiny(int x);
#endif

#ifdef POINTER
int (*volatile pointer)(int);
#endif

__attribute__((noinline, noclone)) int loop(int x)
{
	for (int i = 0; i < 3000000; i++)
		x = tiny(x);
	return x + 1;
}

int main(void)
{
	volatile int x = 0;

#ifdef POINTER
	pointer = tiny;
#endif
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;)
		x = loop(x);
}
#endif
