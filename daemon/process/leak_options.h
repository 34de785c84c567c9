/*
 * Reads from the environment of a process whether LeakSanitizer (lib/unwind/elf/leak_runtime.h) is
 * switched off, and whether LD_PRELOAD loads LeakSanitizer. Used before capture attaches, because
 * LeakSanitizer does not work in a traced process. The rules are those of the sanitizers' own
 * parser (compiler-rt/lib/sanitizer_common/sanitizer_flag_parser.cpp).
 *
 * The sanitizers read their options once, when the process starts. So the environment of that time
 * counts, which /proc/PID/environ shows. These functions do not see options that the program itself
 * sets (__asan_default_options(), __lsan_default_options()), or options in a file (flag include).
 */
#ifndef DAEMON_PROCESS_LEAK_OPTIONS_H
#define DAEMON_PROCESS_LEAK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/msg_unwind.h"

struct leak_options {
	/*
	 * Leak detection is off in a program with AddressSanitizer, which reads ASAN_OPTIONS, then
	 * LSAN_OPTIONS; the last detect_leaks counts.
	 */
	bool asan_off;
	/* Leak detection is off in a program with LeakSanitizer alone, which reads LSAN_OPTIONS. */
	bool lsan_off;
	/*
	 * The runtime that LD_PRELOAD names first: libasan.so, liblsan.so, libclang_rt.asan or
	 * .lsan. FILE_LEAKS_NONE: it names none.
	 */
	enum file_leaks preloads;
};

/*
 * Reads the values of ASAN_OPTIONS, LSAN_OPTIONS and LD_PRELOAD, and keeps none of them. NULL: the
 * variable is not set.
 */
void leak_options_read(const char *asan_options, const char *lsan_options, const char *ld_preload,
		       struct leak_options *ret);

/*
 * Reads environ, the text of /proc/PID/environ: size bytes, a NUL after each variable. If two
 * variables have the same name, the first one counts. If the text ends within a variable, the part
 * that is there counts.
 */
void leak_options_of_environ(const char *environ, size_t size, struct leak_options *ret);

/*
 * Returns true if the options switch off leak detection in a program. The parameter leaks is the
 * program's runtime; for FILE_LEAKS_NONE, no runtime, the result is true. o->preloads does not
 * count: if the program's files have no runtime, the caller may pass o->preloads as leaks.
 */
bool leak_options_are_off(const struct leak_options *o, enum file_leaks leaks);

#endif
