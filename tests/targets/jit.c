/*
 * Makes code at run time, as a JIT does, and waits in it: main, then two made
 * functions that keep frame pointers, then one of its own.
 *
 * Usage: jit MAP: writes the made functions' names to MAP, or with "perf" to
 * /tmp/perf-PID.map; "-": nowhere. Prints the lines of such a file, each after
 * "map ", what it expects on its stack, and "ready".
 */
// cflags: -static -fno-omit-frame-pointer
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int forever = 1;

static NOINLINE void wait_here(void)
{
	const struct timespec t = {1, 0};

	while (forever)
		nanosleep(&t, NULL);
	__asm__ volatile("" ::: "memory");
}

struct made {
	const char *name;
	uint8_t *code;
	size_t size;
};

/* push %rbp; mov %rsp,%rbp; movabs $callee,%rax; call *%rax; pop %rbp; ret */
static void make(struct made *f, uint8_t *at, const void *callee)
{
	static const uint8_t before[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8};
	static const uint8_t after[] = {0xff, 0xd0, 0x5d, 0xc3};

	f->code = at;
	memcpy(at, before, sizeof(before));
	memcpy(at + sizeof(before), &callee, sizeof(callee));
	memcpy(at + sizeof(before) + sizeof(callee), after, sizeof(after));
	f->size = sizeof(before) + sizeof(callee) + sizeof(after);
}

int main(int argc, char **argv)
{
	struct made made[] = {{.name = "JS:*inner /app/server.js:12:7"},
			      {.name = "JS:~outer /app/server.js:3:1"}};
	uint8_t *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *map = NULL;
	char path[64];

	if (argc != 2 || memory == MAP_FAILED)
		return 2;
	make(&made[0], memory, (const void *)(uintptr_t)wait_here);
	make(&made[1], memory + 256, made[0].code);
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (strcmp(argv[1], "-") != 0) {
		map = fopen(strcmp(argv[1], "perf") == 0 ? path : argv[1], "w");
		if (!map)
			return 1;
	}
	for (int i = 0; i < 2; i++) {
		char line[128];

		snprintf(line, sizeof(line), "%lx %zx %s",
			 (unsigned long)(uintptr_t)made[i].code, made[i].size,
			 made[i].name);
		printf("map %s\n", line);
		if (map)
			fprintf(map, "%s\n", line);
	}
	if (map)
		fclose(map);
	printf("expect wait_here;%s;%s;main\nready %d\n", made[0].name,
	       made[1].name, (int)getpid());
	fflush(stdout);
	((void (*)(void))(uintptr_t)made[1].code)();
	return 0;
}
