/*
 * Facts from the machine code of a target's images: the call before a return address,
 * the frame size of a function, where the return address is at an instruction. The walk uses them
 * where call frame information (CFI) is missing, or a register that the CFI needs is unknown.
 *
 * The functions read code from the image's file, some bytes at a time, and keep each answer with
 * the image. All addresses are addresses in memory. If the code cannot be read, a function returns
 * false unless its comment names another answer. cpu.h describes the cpu_*() functions.
 *
 * Budgets: a walk limits what reading code may cost, in units of about 5 ns. A function with a
 * parameter budget subtracts its cost from *budget; an answer that was kept before costs nothing.
 * If *budget is too small, the function answers as if the code could not be read.
 */
#ifndef LIB_UNWIND_SPACE_CODE_H
#define LIB_UNWIND_SPACE_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/unwind/cpu/x86_64_path.h"
#include "lib/unwind/space/space.h"

/* What code_call_before() finds at an address addr. */
enum code_call {
	CODE_CALL_NONE, /* no call ends at addr, and CODE_CALL_NORETURN does not apply */
	/*
	 * No call ends at addr, but the code at addr calls a function that does not return
	 * (cpu_never_returns()). Coroutine libraries write the address of such code to the stack,
	 * as the return address of a coroutine's first function.
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

/*
 * Sets *ret_size to the bytes from the frame pointer down to the stack pointer after the prologue
 * of the function that starts at addr (cpu_frame_size()). Returns false if the function does not
 * set up a frame pointer first.
 */
bool code_frame_size(struct unwind_space *s, uint64_t addr, uint32_t *ret_size);

/*
 * Returns true if the function that starts at addr may lower its stack pointer by an amount that is
 * only known at run time (cpu_frame_varies()). Also returns true if the code cannot be read, if the
 * function has CODE_FRAME_MAX bytes or more, or if it has no CFI, so that its end is unknown.
 */
#define CODE_FRAME_MAX (16u * 1024)
bool code_frame_varies(struct unwind_space *s, uint64_t addr, uint32_t *budget);

/*
 * Returns true if the function that starts at `from` jumps to the one that starts at `to`, in the
 * same image: a tail call. Finds only jumps in the first CPU_TAIL_MAX bytes of a function that has
 * CFI.
 */
bool code_jumps_to(struct unwind_space *s, uint64_t from, uint64_t to);

/*
 * Returns true if the call before the return address ra may have called the function at pc, which
 * has no CFI:
 * - It is a direct call, and its target is less than max bytes before pc, or at pc.
 * - It is an indirect call, or a direct call to another image than that of pc (to a PLT stub, which
 *   jumps anywhere). The symbol that covers pc begins less than max bytes before pc, or at pc.
 */
bool code_may_call(struct unwind_space *s, uint64_t ra, uint64_t pc, uint64_t max);

/*
 * The max, in bytes, to pass to code_may_call() if ra is the value of the link register. Reason:
 * farther from its start than this, a function has pushed registers. Functions that push none
 * (system calls, copies, stubs) are shorter.
 */
#define CODE_LEAF_MAX 512

/*
 * Bytes. If a function has no symbol, code_function() finds it only for an addr that is less than
 * this above the function's start. Hand-written ciphers reach 30 KB.
 */
#define CODE_FUNCTION_MAX (64u * 1024)

/* Returns true if a stub of a PLT is at addr (cpu_is_stub()). On x86-64 always returns false. */
bool code_is_stub(struct unwind_space *s, uint64_t addr);

/*
 * A path: instructions that the processor can execute one after the other. It shows where the
 * frame's return address and the caller's frame pointer are: at offsets in bytes from a base, which
 * mostly is the stack pointer. All members but exits are as in struct x86_64_path.
 */
struct code_path {
	uint32_t ra; /* offset of the return address */
	uint32_t fp; /* offset of the saved frame pointer; X86_64_PATH_FP_SAME: in its register */
	/* A call is on the path. If the called function does not return, the path may be wrong. */
	bool has_call;
	enum x86_64_base base; /* what ra and fp count from */
	uint32_t base_at; /* where the base is (enum x86_64_base); 0 if it is the stack pointer */
	/*
	 * Set by code_path_to_ret() only: the code at addr passes the result of the call before
	 * addr to exit() or pthread_exit(). So addr is in the function that called main() or the
	 * thread's function: the root.
	 */
	bool exits;
};

/*
 * Finds a path from addr to a ret instruction. Returns false if none is found; ret->exits is valid
 * in any case. On aarch64 always returns false.
 */
bool code_path_to_ret(struct unwind_space *s, uint64_t addr, uint32_t *budget,
		      struct code_path *ret);

/*
 * Finds a path from `from`, the start of a function, to the instruction at `to`. Returns false if
 * none is found. On aarch64 always returns false.
 */
bool code_path_from_start(struct unwind_space *s, uint64_t from, uint64_t to, uint32_t *budget,
			  struct code_path *ret);

/*
 * Call it for an addr whose rule has may_install_handler (rules/rows.h). Returns true if the
 * function, before it comes to addr, replaces the registers that it saved by those of an exception
 * handler (x86_64_installs_handler() in cpu/x86_64_path.h).
 */
bool code_installs_handler(struct unwind_space *s, uint64_t addr);

/*
 * Returns the start of the function that covers addr; 0: unknown. Finds the start by the
 * function's symbol. A static function may have no symbol. Then its start is known if another
 * function, which has a symbol, consists only of a jump to it, as malloc() of musl does.
 */
uint64_t code_function(struct unwind_space *s, uint64_t addr, uint32_t *budget);

/*
 * Returns true if addr is in the code that a new thread executes between clone(2) and the call of
 * the thread's function (cpu_is_thread_start()).
 */
bool code_is_thread_start(struct unwind_space *s, uint64_t addr);

/* Returns true if a trampoline of rt_sigreturn(2) is at addr (cpu_is_sigreturn()). */
bool code_is_sigreturn(struct unwind_space *s, uint64_t addr);

#endif
