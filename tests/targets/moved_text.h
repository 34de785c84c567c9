/*
 * The body of the moved_text targets, which differ in their flags. A program that
 * replaces its text by a copy in other memory at the same place, as programs do that put their text
 * into huge pages (node --use-largepages, HHVM, ClickHouse, bolt -hugify), and works there: main,
 * three, two, one, leaf.
 *
 * Usage: moved_text KIND. Prints "ready PID"; after SIGUSR1 replaces the text, and prints "moved".
 * KIND: anon, shared (anonymous shared memory), memfd, pieces (two memfds), middle (anonymous,
 * without the first and the last page), jit (anonymous, at another place: no text is replaced).
 */
#ifndef TESTS_TARGETS_MOVED_TEXT_H
#define TESTS_TARGETS_MOVED_TEXT_H

#include <link.h>
#include <sys/mman.h>

#include "target.h"

#define NOINLINE __attribute__((noipa))
#define PAGE	 UINT64_C(4096)

/* So that the text has several pages, and as much code as a runtime that generates code. */
__asm__(".text\n.balign 4096\n.skip 131072, 0xcc\n");

static volatile uint64_t sum;

static NOINLINE uint64_t leaf(uint64_t x)
{
	return burn(x, 100000);
}

static NOINLINE uint64_t one(uint64_t x)
{
	sum += leaf(x);
	return sum + 1;
}

static NOINLINE uint64_t two(uint64_t x)
{
	sum += one(x);
	return sum + 2;
}

static NOINLINE uint64_t three(uint64_t x)
{
	sum += two(x);
	return sum + 3;
}

struct range {
	uint64_t start, end;
};

static int find_text(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct range *text = ctx;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		text->start = (info->dlpi_addr + p->p_vaddr) & ~(PAGE - 1);
		text->end = (info->dlpi_addr + p->p_vaddr + p->p_memsz + PAGE - 1) & ~(PAGE - 1);
	}
	return 1;
}

static void *at(uint64_t addr)
{
	return (void *)(uintptr_t)addr;
}

/* flags: MAP_PRIVATE or MAP_SHARED. */
static void *copy(struct range r, int flags)
{
	const size_t size = r.end - r.start;
	void *to = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	need(to != MAP_FAILED);
	memcpy(to, at(r.start), size);
	need(mprotect(to, size, PROT_READ | PROT_EXEC) == 0);
	return to;
}

static void move_to_anonymous(struct range r, int flags)
{
	const size_t size = r.end - r.start;

	need(mremap(copy(r, flags), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at(r.start)) ==
	     at(r.start));
}

static void move_to_memfd(struct range r)
{
	const size_t size = r.end - r.start;
	int fd = memfd_create("text", MFD_CLOEXEC);

	need(fd >= 0 && write(fd, at(r.start), size) == (ssize_t)size);
	need(mmap(at(r.start), size, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd, 0) ==
	     at(r.start));
	(void)close(fd);
}

static NOINLINE void move(const char *kind)
{
	struct range text = {0}, half;

	(void)dl_iterate_phdr(find_text, &text);
	half = (struct range){text.start, text.start + 2 * PAGE};
	if (strcmp(kind, "anon") == 0) {
		move_to_anonymous(text, MAP_PRIVATE);
	} else if (strcmp(kind, "shared") == 0) {
		move_to_anonymous(text, MAP_SHARED);
	} else if (strcmp(kind, "memfd") == 0) {
		move_to_memfd(text);
	} else if (strcmp(kind, "pieces") == 0) {
		move_to_memfd(half);
		move_to_memfd((struct range){half.end, text.end});
	} else if (strcmp(kind, "middle") == 0) {
		move_to_anonymous((struct range){text.start + PAGE, text.end - PAGE}, MAP_PRIVATE);
	}
}

int main(int argc, char **argv)
{
	const sigset_t set = set_of(SIGUSR1);
	uint64_t (*work)(uint64_t) = three;
	struct range text = {0};
	int signal;

	need(argc == 2);
	mask(SIG_BLOCK, SIGUSR1);
	ready(getpid());
	need(sigwait(&set, &signal) == 0);
	if (strcmp(argv[1], "jit") == 0) {
		/* leaf() alone does not depend on where it is. */
		(void)dl_iterate_phdr(find_text, &text);
		work = (uint64_t(*)(uint64_t))((uintptr_t)copy(text, MAP_PRIVATE) +
					       ((uintptr_t)leaf - text.start));
	} else {
		move(argv[1]);
	}
	puts("moved");
	(void)fflush(stdout);
	for (uint64_t i = 0;; i++)
		sum += work(i);
}

#endif
