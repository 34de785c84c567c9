/*
 * Reads from the environment of a process whether LeakSanitizer (lib/unwind/elf/leak_runtime.h) is
 * switched off, and whether LD_PRELOAD loads it. Used before capture attaches, because
 * LeakSanitizer does not work in a traced process. The rules are those of the sanitizers' own
 * parser (compiler-rt/lib/sanitizer_common/sanitizer_flag_parser.cpp). The texts are not kept.
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
	/* ASAN_OPTIONS and LSAN_OPTIONS switch leak detection off in AddressSanitizer. */
	bool asan_off;
	/* LSAN_OPTIONS switches leak detection off in LeakSanitizer without AddressSanitizer. */
	bool lsan_off;
	/* The runtime that LD_PRELOAD names: libasan.so, liblsan.so, libclang_rt.asan or .lsan. */
	enum file_leaks preloads;
};

/* Reads the values of three variables; NULL: not set. */
void leak_options_read(const char *asan_options, const char *lsan_options, const char *ld_preload,
		       struct leak_options *ret);

/*
 * Reads the text of /proc/PID/environ: size bytes, a NUL after each variable. If two variables have
 * the same name, the first one counts. The last variable may be cut off; what is there of it
 * counts.
 */
void leak_options_of_environ(const char *environ, size_t size, struct leak_options *ret);

/*
 * Returns true if the options switch off LeakSanitizer in a program whose file has these leaks.
 * Returns true for FILE_LEAKS_NONE.
 */
bool leak_options_are_off(const struct leak_options *o, enum file_leaks leaks);

#endif
