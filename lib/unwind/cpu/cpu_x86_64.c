#include "lib/unwind/cpu.h"

#include <assert.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/unwind/cpu/x86_64_insn.h"

#if CPU_ELF_MACHINE == EM_X86_64

enum cpu_call cpu_call_before(const uint8_t *code, size_t n, int32_t *ret_displacement)
{
	struct x86_64_insn insn;

	if (n >= 5 && code[n - 5] == 0xe8) {
		memcpy(ret_displacement, code + n - 4, sizeof(*ret_displacement));
		return CPU_CALL_DIRECT;
	}
	/* FF /2 with ModRM, SIB and displacement has 2 to 7 bytes. */
	for (size_t size = 2; size <= 7 && size <= n; size++)
		if (x86_64_insn_read(code + n - size, size, &insn) &&
		    insn.kind == X86_64_INSN_CALL && insn.size == size)
			return CPU_CALL_INDIRECT;
	return CPU_CALL_NONE;
}

/* If code has these bytes at *pos, moves *pos behind them and returns true. */
static bool take(const uint8_t *code, size_t n, size_t *pos, const char *bytes, size_t size)
{
	if (n - *pos < size || memcmp(code + *pos, bytes, size) != 0)
		return false;
	*pos += size;
	return true;
}

/* push %rbp; mov %rsp,%rbp; pushes of registers; sub $n,%rsp */
bool cpu_frame_size(const uint8_t *code, size_t n, uint32_t *ret_size)
{
	struct x86_64_parts p;
	size_t pos = 0;

	(void)take(code, n, &pos, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	if (!take(code, n, &pos, "\x55\x48\x89\xe5", 4) &&
	    !take(code, n, &pos, "\x55\x48\x8b\xec", 4))
		return false;
	*ret_size = 0;
	while (x86_64_parts_read(code + pos, n - pos, &p) && p.map == 1 && (p.op & 0xf8) == 0x50) {
		*ret_size += 8;
		pos += p.at;
	}
	if (p.map == 1 && (p.op & 0xfd) == 0x81 && p.rex == X86_64_REX_W && p.modrm == 0xec &&
	    p.imm > 0)
		*ret_size += (uint32_t)p.imm;
	return true;
}

/* Returns true if the instruction (without its REX prefix) sets rsp, and not from rbp. */
static bool sets_rsp(uint8_t rex, uint8_t op, uint8_t modrm)
{
	switch (op) {
	case 0x29: /* sub %r,%rsp; mov %r,%rsp */
	case 0x89:
		return (modrm & 0xc7) == 0xc4 && !(rex & 1) && (rex != 0x48 || modrm != 0xec);
	case 0x2b: /* the same with operands exchanged, or from memory */
	case 0x8b:
		return (modrm & 0x38) == 0x20 && !(rex & 4) && (rex != 0x48 || modrm != 0xe5);
	case 0x81: /* and $n,%rsp */
	case 0x83:
		return modrm == 0xe4 && !(rex & 1);
	}
	return false;
}

bool cpu_frame_varies(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + 3 <= n; i++)
		if ((code[i] & 0xf8) == 0x48 && sets_rsp(code[i], code[i + 1], code[i + 2]))
			return true;
	return false;
}

bool cpu_jumps_to(const uint8_t *code, size_t n, int64_t distance)
{
	struct x86_64_insn insn;

	for (size_t pos = 0; x86_64_insn_read(code + pos, n - pos, &insn);) {
		pos += insn.size;
		if ((insn.kind == X86_64_INSN_JUMP || insn.kind == X86_64_INSN_BRANCH) &&
		    (int64_t)pos + insn.distance == distance)
			return true;
	}
	return false;
}

bool cpu_is_stub(const uint8_t *code, size_t n)
{
	(void)code, (void)n;
	return false;
}

uint32_t cpu_plt_stub(const uint8_t *code, size_t n, uint64_t vaddr, uint64_t *ret_slot)
{
	int32_t displacement;
	size_t pos = 0;

	(void)take(code, n, &pos, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	/* mov $n,%r11d: in stubs of mold */
	if (n - pos >= 6 && code[pos] == 0x41 && code[pos + 1] == 0xbb)
		pos += 6;
	(void)take(code, n, &pos, "\xf2", 1); /* bnd */
	/* jmp *displacement(%rip) */
	if (!take(code, n, &pos, "\xff\x25", 2) || n - pos < sizeof(displacement))
		return 0;
	memcpy(&displacement, code + pos, sizeof(displacement));
	*ret_slot = vaddr + pos + sizeof(displacement) + (uint64_t)(int64_t)displacement;
	return 16;
}

bool cpu_never_returns(const uint8_t *code, size_t n)
{
	struct x86_64_insn insn;
	size_t pos = 0;

	while (x86_64_insn_read(code + pos, n - pos, &insn)) {
		pos += insn.size;
		if (insn.kind == X86_64_INSN_CALL)
			return take(code, n, &pos, "\xf4", 1) ||   /* hlt */
			       take(code, n, &pos, "\x0f\x0b", 2); /* ud2 */
		if (insn.kind != X86_64_INSN_OTHER || insn.sp != 0 || insn.sp_lost)
			return false;
	}
	return false;
}

/* Returns true for "mov $60,%eax; syscall" (exit), behind instructions that pass its argument. */
static bool exits(const uint8_t *code, size_t n)
{
	struct x86_64_insn insn;
	bool by_number = false;
	size_t pos = 0;

	while (pos < n && x86_64_insn_read(code + pos, n - pos, &insn) &&
	       insn.kind == X86_64_INSN_OTHER) {
		if (by_number && take(code, n, &pos, "\x0f\x05", 2))
			return true;
		by_number |= (insn.size == 5 && memcmp(code + pos, "\xb8\x3c\0\0", 4) == 0) ||
			     (insn.size == 2 && memcmp(code + pos, "\xb0\x3c", 2) == 0);
		pos += insn.size;
	}
	return false;
}

/* Returns true if a jump on this condition is taken after a test of a value that is 0. */
static bool is_taken_for_zero(const uint8_t *code)
{
	const uint8_t condition = (code[0] == 0x0f ? code[1] : code[0]) & 0xf;

	return condition == 4 || condition == 9 || condition == 0xd ||
	       condition == 0xe; /* e, ns, ge, le */
}

bool cpu_is_thread_start(const uint8_t *before, size_t n_before, const uint8_t *code, size_t n)
{
	static const uint8_t clear[] = {0x31, 0xed}; /* xor %ebp,%ebp */
	bool cleared = memmem(before, n_before, clear, sizeof(clear)) != NULL;
	struct x86_64_insn insn;
	size_t pos = 0;

	while (pos < n && x86_64_insn_read(code + pos, n - pos, &insn)) {
		const bool jumps =
			insn.kind == X86_64_INSN_JUMP ||
			(insn.kind == X86_64_INSN_BRANCH && is_taken_for_zero(code + pos));

		if (insn.kind == X86_64_INSN_CALL)
			return cleared && code[pos] != 0xe8 &&
			       exits(code + pos + insn.size, n - pos - insn.size);
		if (insn.kind == X86_64_INSN_RET || insn.kind == X86_64_INSN_END)
			return false;
		cleared |=
			insn.size == sizeof(clear) && memcmp(code + pos, clear, sizeof(clear)) == 0;
		pos += insn.size;
		if (!jumps)
			continue;
		if (insn.distance < 0 || (size_t)insn.distance >= n - pos)
			return false;
		pos += (size_t)insn.distance;
	}
	return false;
}

/*
 * syscall leaves its own return address in rcx. The thread's function is called some bytes later:
 * 13 in musl.
 */
bool cpu_syscall_returned_zero(uint64_t known, const uint64_t *r)
{
	const uint64_t needed = 1u << X86_64_RAX | 1u << X86_64_RCX;

	return (known & needed) == needed && r[X86_64_RAX] == 0 &&
	       r[X86_64_RIP] - r[X86_64_RCX] <= 32;
}

/* mov $15,%rax or %eax; syscall */
bool cpu_is_sigreturn(const uint8_t *code, size_t n)
{
	size_t pos = 0;

	if (!take(code, n, &pos, "\x48\xc7\xc0\x0f\0\0\0", 7) &&
	    !take(code, n, &pos, "\xb8\x0f\0\0\0", 5))
		return false;
	return take(code, n, &pos, "\x0f\x05", 2);
}

uint32_t cpu_sigframe_offset(unsigned int reg)
{
	/*
	 * arch/x86/include/asm/sigframe.h; in struct ucontext flags, link and stack_t are before
	 * the registers
	 */
	static const uint32_t gregs = 40;
	/*
	 * the order in struct sigcontext (asm/sigcontext.h): r8 to r15, rdi, rsi, rbp, rbx, rdx,
	 * rax, rcx, rsp, rip
	 */
	static const uint8_t place[CPU_N_REGS] = {
		13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16,
	};

	assert(reg < array_size(place));
	return gregs + 8u * place[reg];
}

#endif
