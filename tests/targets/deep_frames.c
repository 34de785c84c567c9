/* deep_frames N: computes for ever, below N frames of a kilobyte each. */
#include "target.h"

static __attribute__((noinline)) void work(void)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

static __attribute__((noinline)) void descend(long n)
{
	volatile char frame[1024];

	frame[0] = (char)n;
	if (n == 0)
		work();
	else
		descend(n - 1);
	frame[1] = frame[0];
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	ready(getpid());
	descend(strtol(argv[1], NULL, 10));
}
