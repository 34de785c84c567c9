/*
 * An exported assembly function without a size, as nasm writes them, followed by static functions.
 * With -DLIB the library that has them, which the test strips; it prints where the static functions
 * begin in the file.
 */
#include <stdint.h>
#include <stdio.h>

int asm_entry(int x);
void exported(uint64_t n);
void places(void);

#ifdef LIB
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

__asm__(".text\n"
	".globl asm_entry\n"
	".type asm_entry,@function\n"
	"asm_entry: mov %edi,%eax\n"
	"ret\n");

static volatile uint64_t sink;

__attribute__((noinline, noclone, no_reorder)) static void first(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink = sink * 31 + i;
}

__attribute__((noinline, noclone, no_reorder)) static void second(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		sink = sink * 33 + i;
	sink++;
}

static void (*volatile functions[2])(uint64_t) = {first, second};

__attribute__((no_reorder)) void exported(uint64_t n)
{
	functions[0](n);
	functions[1](n);
}

void places(void)
{
	for (int i = 0; i < 2; i++)
		(void)printf("place %lx\n",
			     (unsigned long)((const char *)functions[i] - __ehdr_start));
}
#else
int main(void)
{
	places();
	(void)puts("ready");
	(void)fflush(stdout);
	for (;;)
		exported(2000000 + (uint64_t)asm_entry(0));
}
#endif
