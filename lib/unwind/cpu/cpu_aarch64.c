#include "lib/unwind/cpu.h"

#include <assert.h>
#include <string.h>

#if CPU_ELF_MACHINE == EM_AARCH64

/* Encodings: The Arm Architecture Reference Manual, C6.2. */

static uint32_t instruction(const uint8_t *code)
{
	uint32_t i;

	memcpy(&i, code, sizeof(i));
	return i;
}

/* Returns the lowest n bits of value, a signed number of instructions, as a distance in bytes. */
static int32_t distance_of(uint32_t value, unsigned int n)
{
	uint32_t sign = 1u << (n - 1);

	value &= (1u << n) - 1;
	return ((int32_t)(value ^ sign) - (int32_t)sign) * 4;
}

enum cpu_call cpu_call_before(const uint8_t *code, size_t n, int32_t *ret_displacement)
{
	uint32_t i;

	if (n < 4)
		return CPU_CALL_NONE;
	i = instruction(code + n - 4);
	if (i >> 26 == 0x25) { /* bl */
		*ret_displacement = distance_of(i, 26) - 4;
		return CPU_CALL_DIRECT;
	}
	if ((i & 0xfffffc1f) == 0xd63f0000 || /* blr */
	    (i & 0xfefff800) == 0xd63f0800)   /* blraa, blrabz, ... */
		return CPU_CALL_INDIRECT;
	return CPU_CALL_NONE;
}

bool cpu_frame_size(const uint8_t *code, size_t n, uint32_t *ret_size)
{
	for (size_t at = 0; at + 4 <= n; at += 4) {
		uint32_t i = instruction(code + at);
		uint32_t size;

		if ((i & 0xffc003ff) != 0x910003fd) /* add x29,sp,#n */
			continue;
		size = i >> 10 & 0xfff;
		if (at + 8 <= n) {
			i = instruction(code + at + 4);
			if ((i & 0xffc003ff) == 0xd10003ff) /* sub sp,sp,#n */
				size += i >> 10 & 0xfff;
		}
		*ret_size = size;
		return true;
	}
	return false;
}

bool cpu_frame_varies(const uint8_t *code, size_t n)
{
	for (size_t at = 0; at + 4 <= n; at += 4) {
		uint32_t i = instruction(code + at);

		if ((i & 0xffe003ff) == 0xcb2003ff || /* sub sp,sp,xN */
		    (i & 0xff80001f) == 0x9200001f)   /* and sp,xN,#n */
			return true;
		/* mov sp,xN */
		if ((i & 0xfffffc1f) == 0x9100001f && (i >> 5 & 0x1f) != CPU_FP &&
		    (i >> 5 & 0x1f) != CPU_SP)
			return true;
	}
	return false;
}

bool cpu_jumps_to(const uint8_t *code, size_t n, int64_t distance)
{
	for (size_t at = 0; at + 4 <= n; at += 4) {
		uint32_t i = instruction(code + at);
		int64_t to;

		if (i >> 26 == 0x05) /* b */
			to = distance_of(i, 26);
		else if (i >> 24 == 0x54) /* b.cond */
			to = distance_of(i >> 5, 19);
		else
			continue;
		if ((int64_t)at + to == distance)
			return true;
	}
	return false;
}

uint32_t cpu_plt_stub(const uint8_t *code, size_t n, uint64_t vaddr, uint64_t *ret_slot)
{
	uint32_t adrp, ldr;
	size_t at = 0;
	int64_t page;

	if (n >= 4 && instruction(code) == 0xd503245f) /* bti c */
		at = 4;
	if (n - at < 8)
		return 0;
	adrp = instruction(code + at);
	ldr = instruction(code + at + 4);
	/* adrp x16,PAGE; ldr x17,[x16,#n] */
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return 0;
	/* The number of the page, relative to this one: the high bits, then the two low ones. */
	page = (int64_t)distance_of(adrp >> 5, 19) + (adrp >> 29 & 3);
	*ret_slot = ((vaddr + at) & ~UINT64_C(0xfff)) + (uint64_t)page * 0x1000 +
		    (ldr >> 10 & 0xfff) * 8;
	/* br x17 is the last instruction but for a nop. */
	return n >= 16 && (instruction(code + 8) == 0xd61f0220 ||
			   (at == 0 && instruction(code + 12) == 0xd61f0220))
		       ? 16
		       : 24;
}

bool cpu_is_stub(const uint8_t *code, size_t n)
{
	uint64_t slot;

	return cpu_plt_stub(code, n, 0, &slot) > 0;
}

bool cpu_never_returns(const uint8_t *code, size_t n)
{
	(void)code, (void)n;
	return false;
}

bool cpu_is_thread_start(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n)
{
	(void)before, (void)n_before, (void)code, (void)n;
	return false;
}

bool cpu_syscall_returned_zero(uint64_t known, const uint64_t *r)
{
	(void)known, (void)r;
	return false;
}

/* mov x8,#139; svc #0 */
bool cpu_is_sigreturn(const uint8_t *code, size_t n)
{
	return n >= 8 && instruction(code) == 0xd2801168 && instruction(code + 4) == 0xd4000001;
}

uint32_t cpu_sigframe_offset(unsigned int reg)
{
	/*
	 * arch/arm64/kernel/signal.c: siginfo (128 bytes). In ucontext: flags, link, stack_t, 128
	 * bytes of sigmask, padding to a multiple of 16, and the fault's address.
	 */
	static const uint32_t regs = 128 + (8 + 8 + 24 + 128 + 8) + 8;

	assert(reg < CPU_N_REGS);
	return regs + 8 * reg;
}

#endif
