/*
 * Finds out whether an ELF file brings LeakSanitizer into a process, the leak detector of the
 * compilers' sanitizers. At the end of a process LeakSanitizer traces the process's own threads
 * (ptrace), which fails if another process traces them: then it ends the process with an error.
 *
 * Programs get LeakSanitizer with -fsanitize=address (AddressSanitizer, which has it switched on)
 * or -fsanitize=leak. ThreadSanitizer, MemorySanitizer and UndefinedBehaviorSanitizer do not have
 * it.
 */
#ifndef LIB_UNWIND_ELF_LEAK_RUNTIME_H
#define LIB_UNWIND_ELF_LEAK_RUNTIME_H

#include "lib/unwind/elf/elf_file.h"

enum leak_runtime {
	LEAK_RUNTIME_NONE,
	LEAK_RUNTIME_ASAN, /* as part of AddressSanitizer, which reads ASAN_OPTIONS, too */
	LEAK_RUNTIME_LSAN, /* alone: it reads LSAN_OPTIONS only */
};

/*
 * Searches the file, in this order:
 * - DT_NEEDED: a shared runtime of gcc (libasan.so.N, liblsan.so.N) or clang
 *   (libclang_rt.asan-ARCH.so);
 * - .dynsym and .symtab: __asan_init or __lsan_init, defined or undefined. Instrumented code calls
 *   the first; clang exports both from a program that contains the runtime;
 * - .rodata, if there is no .symtab: a message of LeakSanitizer. A stripped program that gcc has
 *   linked with -static-libasan or -static-liblsan shows nothing else.
 *
 * Reads at most a limit of each section, 128 MB. What cannot be read, and a section beyond its
 * limit, counts as without.
 */
enum leak_runtime leak_runtime_find(const struct elf_file *f);

#endif
