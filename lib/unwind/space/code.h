/*
 * Facts from the machine code of a target's images: the call before a return address,
 * the frame size of a function, where the return address is at an instruction. Used
 * where call frame information is missing, or a register that it needs is unknown.
 *
 * Code is read from the file, some bytes at a time. Each answer is kept with the
 * image. All addresses are addresses in memory.
 *
 * Budgets: a walk limits what reading code may cost, in units of about 5 ns. Functions
 * with a parameter budget subtract their cost from *budget; an answer that is kept costs
 * nothing. If *budget is too small, they answer as if the code could not be read.
 */
#ifndef LIB_UNWIND_SPACE_CODE_H
#define LIB_UNWIND_SPACE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/unwind/cpu/x86_64_path.h"
#include "lib/unwind/space/space.h"

enum code_call {
	CODE_CALL_NONE, /* no call ends at addr: it is no return address */
	/*
	 * No call ends at addr, but the code at addr calls a function that does not return
	 * (cpu_never_returns()). Coroutine libraries write the address of such code as the
	 * return address of a coroutine's first function.
	 */
	CODE_CALL_NORETURN,
	CODE_CALL_UNKNOWN,  /* the code cannot be read */
	CODE_CALL_INDIRECT, /* a call through a register or memory */
	CODE_CALL_DIRECT,   /* a call to *ret_target */
};

/*
 * Classifies the call that ends at the return address addr. Sets *ret_target if the result is
 * CODE_CALL_DIRECT.
 */
enum code_call code_call_before(struct unwind_space *s, uint64_t addr, uint64_t *ret_target);

/* cpu_frame_size() for the function that starts at addr, with the same result. */
bool code_frame_size(struct unwind_space *s, uint64_t addr, uint32_t *ret_size);

/*
 * cpu_frame_varies() of the function that starts at addr. Also true if the function is
 * longer than CODE_FRAME_MAX bytes or cannot be read.
 */
#define CODE_FRAME_MAX (16u * 1024)
bool code_frame_varies(struct unwind_space *s, uint64_t addr, uint32_t *budget);

/*
 * Returns true if the function that starts at from jumps to the one that starts at to, in the
 * same image: a tail call.
 */
bool code_jumps_to(struct unwind_space *s, uint64_t from, uint64_t to);

/*
 * Returns true if the call before the return address ra may have called the code at pc, which
 * has no CFI: the call leads to at most max bytes before pc; or it is indirect, or goes
 * through a PLT, and the symbol of pc begins at most max bytes before pc.
 */
bool code_may_call(struct unwind_space *s, uint64_t ra, uint64_t pc, uint64_t max);

/*
 * Bytes: the max of code_may_call() for a function that has pushed nothing. Such functions are
 * short: system calls, copies, stubs. Farther from its start a function has pushed registers.
 */
#define CODE_LEAF_MAX 512

/*
 * Bytes: the largest distance of an address from the start of its function that code_function()
 * accepts without a symbol of the function. Hand-written ciphers reach 30 KB.
 */
#define CODE_FUNCTION_MAX (64u * 1024)

/* cpu_is_stub() of the code at addr. */
bool code_is_stub(struct unwind_space *s, uint64_t addr);

/*
 * A path through the code, and where the frame's return address and the caller's frame pointer
 * are according to the path, as offsets in bytes from the stack pointer or from another base, as in
 * struct x86_64_path.
 */
struct code_path {
	uint32_t ra;
	uint32_t fp; /* X86_64_PATH_FP_SAME: still in its register */
	/* A call is on the path. It may be one that does not return. */
	bool has_call;
	enum x86_64_base base;
	uint32_t base_at;
	/*
	 * The code at addr passes the value that the call before addr returned to exit(), or to
	 * the end of the thread. So addr is in the function that called main() or the thread's
	 * function: the root. Only code_path_to_ret() sets this.
	 */
	bool exits;
};

/*
 * Finds a path from addr to a ret, along jumps. Returns false if there is none; ret->exits is valid
 * in any case. aarch64: false.
 */
bool code_path_to_ret(struct unwind_space *s, uint64_t addr, uint32_t *budget,
		      struct code_path *ret);

/*
 * Finds a path from the start of a function, from, to the instruction at to. Returns false if there
 * is none. aarch64: false.
 */
bool code_path_from_start(struct unwind_space *s, uint64_t from, uint64_t to, uint32_t *budget,
			  struct code_path *ret);

/*
 * x86_64_installs_handler() (cpu/x86_64_path.h) of the code at addr, in a function whose rule
 * has may_install_handler (rules/rows.h). Returns false if the code cannot be read.
 */
bool code_installs_handler(struct unwind_space *s, uint64_t addr);

/*
 * Returns the start of the function that covers addr: by its symbol or, if it has none,
 * by the symbol of a function that only jumps there. 0: unknown.
 */
uint64_t code_function(struct unwind_space *s, uint64_t addr, uint32_t *budget);

/* cpu_is_thread_start() of the code at addr. */
bool code_is_thread_start(struct unwind_space *s, uint64_t addr);

/* cpu_is_sigreturn() of the code at addr. */
bool code_is_sigreturn(struct unwind_space *s, uint64_t addr);

#endif
