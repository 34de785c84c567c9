/*
 * Which files a call moves data between. Another thread may have given a
 * descriptor's number to another file while the call was under way (dup2(2),
 * close(2) and open(2)): the kernel goes on with the file that the call began
 * with; run again, it would take the new one.
 *
 * Beware: whether that happened before files_find() cannot be told.
 */
#ifndef LIB_CAPTURE_RESTART_FILES_H
#define LIB_CAPTURE_RESTART_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/ptrace/arch.h"
#include "lib/capture/proc/descriptor.h"

#define FILES_MAX 2

struct files {
	unsigned int n;
	struct descriptor_file file[FILES_MAX];
};

/* Those of call nr, in which thread tid is stopped with these registers. */
void files_find(uint32_t tid, const struct user_regs_struct *regs, long nr, struct files *ret);

/* True if the same call has the same files now. */
bool files_are_the_same(const struct files *files, uint32_t tid,
			const struct user_regs_struct *regs, long nr);

#endif
