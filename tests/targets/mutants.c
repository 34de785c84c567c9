// machine: x86_64
/*
 * Maps the code of many mutated ELF files (tests/storm/elf_mutants.py), and has stacks that lead through
 * each of them, again and again.
 *
 * Usage: mutants LIST THREADS. A line of LIST is a file:
 *     ADDRESS OFFSET SIZE CALL PATH PC...
 * SIZE bytes of the file at PATH, from OFFSET on, are mapped at ADDRESS, executable. If CALL is not
 * 0, it is the address of the function pass() of mutated.c in there. PC... are addresses in there.
 * All numbers are hexadecimal. The program prints "ready PID" when all files are mapped.
 *
 * Thread n has every THREADS-th file. In turn it calls pass() of the file, which calls nap(); and
 * for each PC it naps as if it had been called from the instruction before PC.
 */
#include <sys/mman.h>

#include "target.h"

#define FILES_MAX 2000
#define PCS_MAX	  16
/* Two periods of the profiler. */
#define NAP_NS 20000000

typedef int (*next_fn)(const void *next);

struct file {
	uint64_t call;
	uint64_t pcs[PCS_MAX];
	size_t n_pcs;
};

static struct file files[FILES_MAX];
static size_t n_files, n_threads;
static const struct timespec nap_time = {.tv_nsec = NAP_NS};

static __attribute__((noipa)) int nap(const void *next)
{
	(void)nanosleep(&nap_time, NULL);
	return next == NULL;
}

/*
 * nanosleep(time, NULL) with pc as the return address of its frame. The compiler's call frame
 * information of a naked function says that the return address is at the stack pointer.
 */
static __attribute__((naked, noipa)) long nap_called_from(uint64_t pc, const struct timespec *time)
{
	__asm__("push %rdi\n"
		"mov %rsi, %rdi\n"
		"xor %esi, %esi\n"
		"mov $35, %eax\n"
		"syscall\n"
		"add $8, %rsp\n"
		"ret\n");
}

static __attribute__((noipa)) void visit(const struct file *f)
{
	static const next_fn list[] = {nap, NULL};

	if (f->call != 0)
		(void)((next_fn)f->call)(list);
	for (size_t i = 0; i < f->n_pcs; i++)
		(void)nap_called_from(f->pcs[i], &nap_time);
}

static void *visit_all(void *argument)
{
	const size_t first = (size_t)argument;

	for (;;)
		for (size_t i = first; i < n_files; i += n_threads)
			visit(&files[i]);
	return NULL;
}

/* Maps the file of a line. A file that cannot be mapped is not visited. */
static void map(char *line)
{
	uint64_t address, offset, size;
	struct file *f = &files[n_files];
	char path[4096];
	int fd, end;
	void *at;

	need(sscanf(line, "%lx %lx %lx %lx %4095s%n", &address, &offset, &size, &f->call, path,
		    &end) == 5);
	for (char *p = line + end, *next; f->n_pcs < PCS_MAX; p = next) {
		f->pcs[f->n_pcs] = strtoull(p, &next, 16);
		if (next == p)
			break;
		f->n_pcs++;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	need(fd >= 0);
	at = mmap((void *)address, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
		  fd, (off_t)offset);
	need(at == (void *)address);
	(void)close(fd);
	n_files++;
}

int main(int argc, char **argv)
{
	char line[8192];
	FILE *list;

	need(argc == 3);
	list = fopen(argv[1], "re");
	n_threads = strtoul(argv[2], NULL, 10);
	need(list != NULL && n_threads > 0);
	while (n_files < FILES_MAX && fgets(line, sizeof(line), list) != NULL)
		map(line);
	(void)fclose(list);
	for (size_t i = 1; i < n_threads; i++)
		(void)start(visit_all, (void *)i);
	ready(getpid());
	(void)visit_all(NULL);
	return EXIT_SUCCESS;
}
