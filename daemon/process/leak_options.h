/*
 * Reads from a process's environment whether LeakSanitizer (lib/unwind/elf/leak_runtime.h) is
 * switched off, and whether LD_PRELOAD loads it. The texts are compared with fixed words, by the
 * rules of the sanitizers' own parser (compiler-rt/lib/sanitizer_common/sanitizer_flag_parser.cpp),
 * and not kept.
 *
 * The sanitizers read their options once, when the process starts. So the environment at that time
 * counts, as /proc/PID/environ has it. What these functions do not see: options that the program
 * itself gives (__asan_default_options(), __lsan_default_options()), and options in a file that the
 * flag include names.
 */
#ifndef DAEMON_PROCESS_LEAK_OPTIONS_H
#define DAEMON_PROCESS_LEAK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/msg/msg_unwind.h"

struct leak_options {
	/* detect_leaks is off for a program with AddressSanitizer: ASAN_OPTIONS, LSAN_OPTIONS. */
	bool asan_off;
	/* It is off for a program with LeakSanitizer alone: LSAN_OPTIONS. */
	bool lsan_off;
	/* Which runtime LD_PRELOAD names (libasan.so, liblsan.so, libclang_rt.asan). */
	enum file_leaks preloads;
};

/* Reads the values of three variables; NULL: not set. */
void leak_options_read(const char *asan_options, const char *lsan_options, const char *ld_preload,
		       struct leak_options *ret);

/*
 * Reads the text of /proc/PID/environ: size bytes, each variable with its NUL. The first variable
 * of a name counts. The last variable may be cut off, and is read without the part that is missing.
 */
void leak_options_of_environ(const char *environ, size_t size, struct leak_options *ret);

/* Returns true if LeakSanitizer, of a file with these leaks, is switched off. */
bool leak_options_are_off(const struct leak_options *o, enum file_leaks leaks);

#endif
