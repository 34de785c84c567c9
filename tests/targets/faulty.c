// cflags: -shared -fPIC -ldl
/*
 * A fault of libelf, for tests/storm/elf_mutants.py: preloaded, it is called for elf_begin(), and
 * writes to address 0 if the header of the file has FAULTY_FLAGS. For other files it calls
 * libelf's function.
 */
#include <dlfcn.h>
#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define FAULTY_FLAGS 0x0badf11e

typedef void *(*begin_fn)(int fd, int command, void *of);

void *elf_begin(int fd, int command, void *of);

void *elf_begin(int fd, int command, void *of)
{
	static int *volatile nowhere;
	void *found = dlsym(RTLD_NEXT, "elf_begin");
	Elf64_Ehdr header;
	begin_fn begin;

	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    header.e_flags == FAULTY_FLAGS)
		*nowhere = 1;
	memcpy(&begin, &found, sizeof(begin));
	return begin(fd, command, of);
}
