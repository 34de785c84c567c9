/*
 * What the walk has to know of aarch64, as arch_x86_64.h: register numbers, and
 * readings of machine code that help where a frame pointer is not known. Pure
 * functions.
 */
#ifndef LIB_UNWIND_ARCH_AARCH64_H
#define LIB_UNWIND_ARCH_AARCH64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF numbers: DWARF for the Arm 64-bit Architecture, 4.1. */
#define AARCH64_X19 19 /* the first callee-saved one */
#define AARCH64_FP  29
#define AARCH64_LR  30
#define AARCH64_SP  31
/* Of a sample only: DWARF has another register there. */
#define AARCH64_PC     32
#define AARCH64_N_REGS 33

/* What is added to the pc that a signal interrupted (see unwind.h). */
#define AARCH64_PC_STEP 4

/*
 * Where pointer authentication signs a return address (paciasp), the signature
 * stands in the bits above the address: of 48 bits, unless a program asks for
 * memory above them, which none does for code.
 */
#define AARCH64_ADDRESS_BITS 48

static inline uint64_t aarch64_return_address(uint64_t word)
{
	return word & ((UINT64_C(1) << AARCH64_ADDRESS_BITS) - 1);
}

enum aarch64_call {
	AARCH64_CALL_NONE,     /* no call instruction ends here */
	AARCH64_CALL_DIRECT,   /* bl: its target is known */
	AARCH64_CALL_INDIRECT, /* blr, blraa and the like */
};

#define AARCH64_CALL_MAX 4

/*
 * Is the instruction that ends where code[n] would stand a call?
 * *ret_displacement is set for a direct one: its target is the return address
 * plus that.
 */
enum aarch64_call aarch64_call_before(const uint8_t *code, size_t n,
				      int32_t *ret_displacement);

/* As much of a function's start as aarch64_frame_size looks at. */
#define AARCH64_PROLOGUE_MAX 48

/*
 * The distance from the frame pointer down to the stack pointer that a function
 * has after its prologue, read from its first n bytes: add x29,sp,#n (mov is
 * that with 0) and, directly behind it, sub sp,sp,#n. False if it starts in
 * another way. Where more is allocated it is larger than that.
 */
bool aarch64_frame_size(const uint8_t *code, size_t n, uint32_t *ret_size);

/*
 * Does code lower the stack pointer by what it only knows when it runs: sub of
 * a register, or sp set from one that is not the frame pointer?
 */
bool aarch64_frame_varies(const uint8_t *code, size_t n);

/* Functions that only pass on to another are short. */
#define AARCH64_TAIL_MAX 256

/* Is there a b or b.cond in code to distance from its start? */
bool aarch64_jumps_to(const uint8_t *code, size_t n, int64_t distance);

/*
 * Is code a jump through memory, as PLT stubs are? The return address is where
 * the call has left it.
 */
bool aarch64_is_stub(const uint8_t *code, size_t n);

/* Does code end with a call that does not return? Not told here. */
#define AARCH64_LAST_MAX 4
static inline bool aarch64_never_returns(const uint8_t *code, size_t n)
{
	(void)code;
	(void)n;
	return false;
}

/* Is code the way of a new thread? Not told here. */
#define AARCH64_BIRTH_MAX    4
#define AARCH64_BIRTH_BEFORE 4
static inline bool aarch64_is_birth(const uint8_t *before, size_t n_before,
				    const uint8_t *code, size_t n)
{
	(void)before;
	(void)n_before;
	(void)code;
	(void)n;
	return false;
}

/*
 * Is this rt_sigreturn's trampoline: mov x8,#139; svc #0? The kernel gives its
 * own no CFI: unwinders are to look for these instructions
 * (arch/arm64/kernel/vdso/sigreturn.S).
 */
#define AARCH64_SIGRETURN_MAX 8
bool aarch64_is_sigreturn(const uint8_t *code, size_t n);

/*
 * Where rt_sigreturn finds register reg of a sample, as an offset from the
 * stack pointer in the trampoline: struct rt_sigframe,
 * arch/arm64/kernel/signal.c.
 */
uint32_t aarch64_sigframe_offset(unsigned int reg);

#endif
