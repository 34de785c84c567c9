/*
 * Other unwinders on recorded samples. libdwfl and libunwind read the stack from the record, as
 * sentry-profd does, and find call frame information by themselves. libunwind-ptrace is also used
 * in the usual way, on a stopped thread. On an error all functions print a line and exit.
 */
#ifndef TESTS_BENCH_OTHERS_H
#define TESTS_BENCH_OTHERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/capture/sample.h"

enum other {
	OTHER_LIBUNWIND, /* by the accessors of libunwind-ptrace, except for the stack */
	OTHER_LIBDWFL,
	OTHER_PTRACE, /* libunwind-ptrace on a stopped thread; ignores the sample */
	OTHER_N
};

/*
 * Prepares all unwinders for the samples of process pid. The process must be alive, since its
 * memory and files are read, and traced by the caller. Thread tid is stopped until the caller
 * exits.
 */
void others_open(pid_t pid, pid_t tid);

/* Prepares one unwinder, with empty caches. Stops no thread. */
void others_open_one(enum other other, pid_t pid);
void others_close_one(enum other other);

/*
 * Unwinds a sample with all registers. Writes the addresses of the frames to ret, leaf first, as
 * the unwinder gives them. Returns their number, at most max.
 */
size_t others_walk(enum other other, const struct record_sample *sample, uint64_t *ret, size_t max);

/*
 * Unwinds a sample and looks up the name of each frame. Returns the number of frames with a name;
 * 0 for OTHER_PTRACE.
 */
size_t others_name(enum other other, const struct record_sample *sample, size_t max);

#endif
