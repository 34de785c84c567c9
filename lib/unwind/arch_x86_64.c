#include "lib/unwind/arch_x86_64.h"

#include <assert.h>
#include <string.h>

#include "lib/base/util.h"

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

bool x86_64_is_stub(const uint8_t *code, size_t n)
{
	size_t pos = 0;

	(void)take(code, n, &pos, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	(void)take(code, n, &pos, "\xf2", 1);		  /* bnd */
	return take(code, n, &pos, "\xff\x25", 2);	  /* jmp *n(%rip) */
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
