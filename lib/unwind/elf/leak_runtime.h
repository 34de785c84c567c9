/*
 * Finds out whether an ELF file brings LeakSanitizer, the leak detector of gcc and clang, into a
 * process. When the process ends, LeakSanitizer traces its threads (ptrace). If another process,
 * such as capture, traces them already, LeakSanitizer ends the process with an error. So the broker
 * asks unwind about the files of a process before capture attaches.
 *
 * Programs get LeakSanitizer with -fsanitize=address (AddressSanitizer, which has it switched on)
 * or -fsanitize=leak. ThreadSanitizer, MemorySanitizer and UndefinedBehaviorSanitizer do not have
 * it.
 */
#ifndef LIB_UNWIND_ELF_LEAK_RUNTIME_H
#define LIB_UNWIND_ELF_LEAK_RUNTIME_H

#include "lib/unwind/elf/elf_file.h"

/* The environment variables named here can switch LeakSanitizer off (detect_leaks=0). */
enum leak_runtime {
	LEAK_RUNTIME_NONE,
	LEAK_RUNTIME_ASAN, /* as part of AddressSanitizer: reads ASAN_OPTIONS and LSAN_OPTIONS */
	LEAK_RUNTIME_LSAN, /* alone: reads LSAN_OPTIONS only */
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
 * Reads at most the first 128 MB of a section. A part of the file that is not or cannot be read
 * counts as one without LeakSanitizer.
 */
enum leak_runtime leak_runtime_find(const struct elf_file *f);

#endif
