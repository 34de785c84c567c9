#include "lib/unwind/arch_x86_64.h"

#include <assert.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/unwind/x86_64_insn.h"

/* Bytes that an FF-group instruction takes from its ModRM byte on. */
static size_t modrm_size(const uint8_t *modrm, size_t n)
{
	unsigned int mod = modrm[0] >> 6;
	unsigned int rm = modrm[0] & 7;
	size_t size = 1;

	if (mod == 3)
		return 1;
	if (rm == 4) {
		if (n < 2)
			return 0;
		size++;
		if (mod == 0 && (modrm[1] & 7) == 5)
			return size + 4;
	}
	if (mod == 0 && rm == 5)
		return size + 4;
	if (mod == 1)
		return size + 1;
	return mod == 2 ? size + 4 : size;
}

enum x86_64_call x86_64_call_before(const uint8_t *code, size_t n,
				    int32_t *ret_displacement)
{
	size_t size;

	if (n >= 5 && code[n - 5] == 0xe8) {
		memcpy(ret_displacement, code + n - 4,
		       sizeof(*ret_displacement));
		return X86_64_CALL_DIRECT;
	}
	/* FF /2 with ModRM, SIB and displacement: 2 to 7 bytes. */
	for (size = 2; size <= 7 && size <= n; size++) {
		const uint8_t *p = code + n - size;

		if (p[0] == 0xff && ((p[1] >> 3) & 7) == 2 &&
		    modrm_size(p + 1, size - 1) == size - 1)
			return X86_64_CALL_INDIRECT;
	}
	return X86_64_CALL_NONE;
}

/* Does code start with these bytes? Then *pos moves behind them. */
static bool take(const uint8_t *code, size_t n, size_t *pos, const char *bytes,
		 size_t size)
{
	if (n - *pos < size || memcmp(code + *pos, bytes, size) != 0)
		return false;
	*pos += size;
	return true;
}

bool x86_64_frame_size(const uint8_t *code, size_t n, uint32_t *ret_size)
{
	uint32_t pushed = 0;
	uint32_t size = 0;
	size_t pos = 0;

	(void)take(code, n, &pos, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	if (!take(code, n, &pos, "\x55", 1))		  /* push %rbp */
		return false;
	if (!take(code, n, &pos, "\x48\x89\xe5", 3) && /* mov %rsp,%rbp */
	    !take(code, n, &pos, "\x48\x8b\xec", 3))
		return false;
	for (;;) {
		size_t prefix = n - pos > 1 && code[pos] == 0x41;

		if (n - pos <= prefix || (code[pos + prefix] & 0xf8) != 0x50)
			break;
		pos += prefix + 1;
		pushed += 8;
	}
	if (take(code, n, &pos, "\x48\x83\xec", 3) && pos < n)
		size = code[pos]; /* a negative imm8 would be no allocation */
	else if (take(code, n, &pos, "\x48\x81\xec", 3) && n - pos >= 4)
		memcpy(&size, code + pos, sizeof(size));
	if (size > INT32_MAX - pushed)
		return false;
	*ret_size = pushed + size;
	return true;
}

/* Of an instruction without its REX: does it set rsp, not from rbp? */
static bool sets_rsp(uint8_t rex, uint8_t op, uint8_t modrm)
{
	switch (op) {
	case 0x29: /* sub %r,%rsp; mov %r,%rsp */
	case 0x89:
		return (modrm & 0xc7) == 0xc4 && !(rex & 1) &&
		       (rex != 0x48 || modrm != 0xec);
	case 0x2b: /* the same the other way round, or from memory */
	case 0x8b:
		return (modrm & 0x38) == 0x20 && !(rex & 4) &&
		       (rex != 0x48 || modrm != 0xe5);
	case 0x81: /* and $n,%rsp */
	case 0x83:
		return modrm == 0xe4 && !(rex & 1);
	}
	return false;
}

bool x86_64_frame_varies(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + 3 <= n; i++)
		if ((code[i] & 0xf8) == 0x48 &&
		    sets_rsp(code[i], code[i + 1], code[i + 2]))
			return true;
	return false;
}

bool x86_64_jumps_to(const uint8_t *code, size_t n, int64_t distance)
{
	for (size_t i = 0; i + 5 <= n; i++) {
		int32_t displacement;

		if (code[i] != 0xe9 &&
		    (i == 0 || code[i - 1] != 0x0f || (code[i] & 0xf0) != 0x80))
			continue;
		memcpy(&displacement, code + i + 1, sizeof(displacement));
		if ((int64_t)i + 5 + displacement == distance)
			return true;
	}
	return false;
}

/* The size of an instruction that leaves memory, rsp and rbp alone, or 0. */
static size_t harmless_size(const uint8_t *code, size_t n)
{
	size_t at = n > 0 && (code[0] & 0xf0) == 0x40; /* REX */
	uint8_t rex = at > 0 ? code[0] : 0;
	uint8_t modrm, to;

	if (n - at < 2)
		return 0;
	modrm = code[at + 1];
	switch (code[at]) {
	case 0x89: /* mov, xor and test of registers */
	case 0x31:
	case 0x85:
		to = (uint8_t)((modrm & 7) | (rex & 1) << 3);
		return modrm >> 6 == 3 && to != 4 && to != 5 ? at + 2 : 0;
	case 0x8b: /* mov n(%rip) */
		to = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
		return (modrm & 0xc7) == 5 && to != 4 && to != 5 ? at + 6 : 0;
	case 0x74: /* je over a call */
		return at == 0 && modrm == 2 && n >= 4 && code[2] == 0xff &&
				       code[3] == 0xd0
			       ? 4
			       : 0;
	case 0xff: /* call *%rax */
		return at == 0 && modrm == 0xd0 ? 2 : 0;
	}
	return code[at] >= 0xb8 && code[at] <= 0xbb ? at + (rex & 8 ? 9 : 5)
						    : 0; /* mov $n */
}

bool x86_64_never_returns(const uint8_t *code, size_t n)
{
	size_t pos = 0;
	size_t size;

	(void)take(code, n, &pos, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	while ((size = harmless_size(code + pos, n - pos)) > 0 &&
	       size < n - pos)
		pos += size;
	if (n - pos > 5 && code[pos] == 0xe8) /* call */
		pos += 5;
	else if (n - pos > 6 && code[pos] == 0xff && code[pos + 1] == 0x15)
		pos += 6; /* call *n(%rip) */
	else
		return false;
	return take(code, n, &pos, "\xf4", 1) ||   /* hlt */
	       take(code, n, &pos, "\x0f\x0b", 2); /* ud2 */
}

/* mov $60,%eax or %al; syscall, past what passes its argument on. */
static bool exits(const uint8_t *code, size_t n)
{
	struct x86_64_insn insn;
	bool by_number = false;
	size_t pos = 0;

	while (pos < n && x86_64_insn_read(code + pos, n - pos, &insn) &&
	       insn.kind == X86_64_INSN_OTHER) {
		if (by_number && take(code, n, &pos, "\x0f\x05", 2))
			return true;
		by_number |= (insn.size == 5 &&
			      memcmp(code + pos, "\xb8\x3c\0\0", 4) == 0) ||
			     (insn.size == 2 &&
			      memcmp(code + pos, "\xb0\x3c", 2) == 0);
		pos += insn.size;
	}
	return false;
}

/* Is a jump on this condition taken behind a test of what is 0? */
static bool is_taken_for_zero(const uint8_t *code)
{
	const uint8_t condition = (code[0] == 0x0f ? code[1] : code[0]) & 0xf;

	return condition == 4 || condition == 9 || condition == 0xd ||
	       condition == 0xe; /* e, ns, ge, le */
}

bool x86_64_is_birth(const uint8_t *before, size_t n_before,
		     const uint8_t *code, size_t n)
{
	static const uint8_t clear[] = {0x31, 0xed}; /* xor %ebp,%ebp */
	bool cleared = memmem(before, n_before, clear, sizeof(clear)) != NULL;
	struct x86_64_insn insn;
	size_t pos = 0;

	while (pos < n && x86_64_insn_read(code + pos, n - pos, &insn)) {
		const bool jumps = insn.kind == X86_64_INSN_JUMP ||
				   (insn.kind == X86_64_INSN_BRANCH &&
				    is_taken_for_zero(code + pos));

		if (insn.kind == X86_64_INSN_CALL)
			return cleared && code[pos] != 0xe8 &&
			       exits(code + pos + insn.size,
				     n - pos - insn.size);
		if (insn.kind == X86_64_INSN_RET ||
		    insn.kind == X86_64_INSN_END)
			return false;
		cleared |= insn.size == sizeof(clear) &&
			   memcmp(code + pos, clear, sizeof(clear)) == 0;
		pos += insn.size;
		if (!jumps)
			continue;
		if (insn.distance < 0 || (size_t)insn.distance >= n - pos)
			return false;
		pos += (size_t)insn.distance;
	}
	return false;
}

bool x86_64_is_sigreturn(const uint8_t *code, size_t n)
{
	size_t pos = 0;

	if (!take(code, n, &pos, "\x48\xc7\xc0\x0f\0\0\0", 7) &&
	    !take(code, n, &pos, "\xb8\x0f\0\0\0", 5))
		return false;
	return take(code, n, &pos, "\x0f\x05", 2);
}

uint32_t x86_64_sigframe_offset(unsigned int reg)
{
	/* struct ucontext: flags, link and stack_t stand before the registers
	 */
	static const uint32_t gregs = 40;
	/* struct sigcontext: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp,
	 * rip; asm/sigcontext.h */
	static const uint8_t place[X86_64_N_REGS] = {
		13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16,
	};

	assert(reg < array_size(place));
	return gregs + 8u * place[reg];
}
