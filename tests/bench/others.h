/*
 * Other unwinders on recorded samples: what they read of the stack comes from
 * the record, as ours does, and call frame information from where they look
 * for it themselves. And libunwind-ptrace as it is used, on a thread that is
 * stopped. What fails ends the program.
 */
#ifndef TESTS_BENCH_OTHERS_H
#define TESTS_BENCH_OTHERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/capture/sample.h"

enum other {
	OTHER_LIBUNWIND, /* libunwind-ptrace's accessors, but for the stack */
	OTHER_LIBDWFL,
	OTHER_PTRACE, /* libunwind-ptrace, of one thread, whatever the sample */
	OTHER_N
};

/*
 * The process that samples are of: alive, as its memory and files are read, and
 * traced by the caller. Its thread tid is stopped until the caller exits.
 */
void others_open(pid_t pid, pid_t tid);

/* The same of one unwinder, by which nothing was read yet; no thread is
 * stopped.
 */
void others_open_one(enum other other, pid_t pid);
void others_close_one(enum other other);

/*
 * The frames of a sample whose registers are all known, leaf first, as each
 * gives them; returns their number, max at most.
 */
size_t others_walk(enum other other, const struct record_sample *sample, uint64_t *ret, size_t max);

/*
 * The same; and asks for each frame's name. Returns how many have one. Not of
 * OTHER_PTRACE.
 */
size_t others_name(enum other other, const struct record_sample *sample, size_t max);

#endif
