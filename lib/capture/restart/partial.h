/*
 * Partial transfers: system calls that returned fewer bytes or messages than requested, because of
 * a pending signal or a ptrace-stop. Example: write(2) wrote 3 of 10 bytes. The module finds how
 * much was requested, and the call that transfers the rest. Used by restart/resume.h.
 *
 * The module knows the calls for which a program without signal handlers relies on a whole
 * transfer, such as write(2) to a pipe or socket (the rows of restart/syscalls.c with `asked`). For
 * each of them one of these holds:
 * - only an interruption makes the call return a part;
 * - a call for the rest does no harm: it returns at once, with an error or without data.
 *
 * Other calls stay short, as after any signal (docs/SAFETY.md). For some of them, such as recv(2)
 * without MSG_WAITALL, a call for the rest could wait for ever.
 *
 * Nothing is written to the target's memory. So the rest of a call with iovecs, which registers
 * alone cannot describe, is transferred piece by piece.
 *
 * Sources: pipe(7), send(2), recv(2), and the kernel's files that restart/syscalls.c names.
 */
#ifndef LIB_CAPTURE_RESTART_PARTIAL_H
#define LIB_CAPTURE_RESTART_PARTIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/capture/proc/descriptor.h"
#include "lib/capture/ptrace/arch.h"

struct partial {
	/* Set by the caller: the stopped thread, and its registers at the return of the call. */
	uint32_t tid;
	int pagemap_fd; /* see proc/memory.h */
	struct arch_regs regs;
	/* Set by partial_find(). The caller adds the results of further calls to done. */
	long nr;		   /* number of the call */
	uint64_t whole;		   /* bytes or messages requested */
	uint64_t done;		   /* bytes or messages transferred so far */
	enum descriptor_kind file; /* kind of file; DESCRIPTOR_OTHER where it does not matter */
};

/* The next call of a partial transfer, for the rest or for a piece of it. */
struct partial_call {
	long nr;
	uint64_t arguments[ARCH_ARGUMENTS];
	uint64_t asked; /* its result if it transfers everything */
};

/*
 * Returns true if the interrupted call has returned a part, and the module knows how to transfer
 * the rest. For some calls the function reads the thread's memory, and the kind of file of its
 * descriptor, without opening a file.
 */
bool partial_find(struct partial *p);

/*
 * Returns true if the calls for the rest differ from the first call in address and size only. Then
 * a seccomp filter that permits the first call permits these, unless it checks a buffer or a size
 * (docs/SAFETY.md).
 */
bool partial_changes_only_buffer(const struct partial *p);

/* Returns true if the call is on a socket: then the socket's timeout may have ended it. */
bool partial_may_have_timed_out(const struct partial *p);

/*
 * Returns true and sets *ret to the next call. Example: after write(1, 0x1000, 10) has returned 3,
 * the next call is write(1, 0x1003, 7), and asked is 7. Returns false if all is transferred, or if
 * the target's iovecs cannot be read.
 */
bool partial_next(const struct partial *p, struct partial_call *ret);

/*
 * The files between which a call moves data. Another thread may give a descriptor's number to
 * another file while the call is under way (dup2(2), close(2) and open(2)). The kernel continues
 * with the file with which the call began, but a call for the rest would use the new file.
 */
#define PARTIAL_FILES_MAX 2

struct partial_files {
	unsigned int n;
	struct descriptor_file file[PARTIAL_FILES_MAX];
};

/*
 * Finds the files to which the descriptors of a call refer now. Call it directly after
 * partial_find(), at the same stop: regs and nr are those of the struct partial. At a later stop
 * the descriptors may refer to other files.
 */
void partial_files(uint32_t tid, const struct arch_regs *regs, long nr, struct partial_files *ret);

/* Returns true if the descriptors of call nr still refer to *files (of partial_files). */
bool partial_has_files(const struct partial_files *files, uint32_t tid,
		       const struct arch_regs *regs, long nr);

#endif
