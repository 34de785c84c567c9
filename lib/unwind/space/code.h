/*
 * What the machine code of images says: what stands before a return address,
 * how large a function's frame is. Read from the file, eight bytes here and
 * forty there, when a walk does not know a frame pointer; each answer is kept
 * with its image.
 */
#ifndef LIB_UNWIND_SPACE_CODE_H
#define LIB_UNWIND_SPACE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/unwind/space/space.h"

enum code_call {
	CODE_CALL_NONE,	    /* no call ends there: no return address */
	CODE_CALL_NORETURN, /* so it is, and what follows does not return */
	CODE_CALL_UNKNOWN,  /* the code can't be read */
	CODE_CALL_INDIRECT, /* a call whose target is not known */
	CODE_CALL_DIRECT,   /* a call to *ret_target */
};

/* What ends at the return address addr. *ret_target is an address in memory. */
enum code_call code_call_before(struct unwind_space *s, uint64_t addr, uint64_t *ret_target);

/* cpu_frame_size of the function that starts at addr. */
bool code_frame_size(struct unwind_space *s, uint64_t addr, uint32_t *ret_size);

/*
 * cpu_frame_varies of it. Yes, too, if it is longer than CODE_FRAME_MAX, or
 * cannot be read. *budget: as for code_path_to_ret.
 */
#define CODE_FRAME_MAX (16u * 1024)
bool code_frame_varies(struct unwind_space *s, uint64_t addr, uint32_t *budget);

/*
 * Does the function that starts at from jump to the one that starts at to, in
 * the same image: a tail call?
 */
bool code_jumps_to(struct unwind_space *s, uint64_t from, uint64_t to);

/*
 * May the call before the return address ra be one of the code at pc, which has
 * no CFI? It leads to a place in front of pc, at most max bytes; or, through a
 * PLT or a pointer, anywhere, and pc's symbol begins that near.
 */
bool code_may_call(struct unwind_space *s, uint64_t ra, uint64_t pc, uint64_t max);

/*
 * Code that pushes nothing is short: system calls, copies, stubs. Longer code
 * has saved something before it comes so far.
 */
#define CODE_LEAF_MAX 512

/* Ciphers that are written by hand reach 30 KB. */
#define CODE_FRAMED_MAX (64u * 1024)

/* cpu_is_stub of what stands at addr. */
bool code_is_stub(struct unwind_space *s, uint64_t addr);

/*
 * Where the return address and the caller's frame pointer are by what the code
 * at addr is about to do, along its jumps, up to as far away as a stack is
 * copied. has_call: there is a call on the way, which may be one that does not
 * return. *budget is what reading may cost, in units of some 5 ns, less what it
 * has; nothing for an answer that is known. False if no way is found; exits is
 * told in any case.
 */
struct code_path {
	uint32_t ra;
	uint32_t fp; /* X86_64_PATH_FP_SAME: it is not restored */
	bool has_call;
	/* What comes back to addr is passed on to exit(), or a thread's end. */
	bool exits;
};
bool code_path_to_ret(struct unwind_space *s, uint64_t addr, uint32_t *budget,
		      struct code_path *ret);

/*
 * The same at to, by the way there from the start of a function, whatever comes
 * behind.
 */
bool code_path_from_start(struct unwind_space *s, uint64_t from, uint64_t to, uint32_t *budget,
			  struct code_path *ret);

/*
 * x86_64_installs_handler of the code at addr, in a function that may; false, too, if
 * it can't be read.
 */
bool code_installs_handler(struct unwind_space *s, uint64_t addr);

/*
 * The start of the function that addr lies in, by its symbol, or, as far as can
 * be told, by that of one that does nothing but jump there; 0: not known.
 * *budget: as for code_path_to_ret.
 */
uint64_t code_function(struct unwind_space *s, uint64_t addr, uint32_t *budget);

/* Is addr on a new thread's way, to which clone(2) has given 0? */
bool code_is_thread_start(struct unwind_space *s, uint64_t addr);

/* Does rt_sigreturn's trampoline start at addr? */
bool code_is_sigreturn(struct unwind_space *s, uint64_t addr);

#endif
