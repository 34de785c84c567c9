#include "lib/unwind/cpu/x86_64_insn.h"

#include <string.h>

#include "lib/base/util.h"

/* Registers whose numbers have another meaning in ModRM and SIB. */
#define RSP 4u
#define RBP 5u

/*
 * What follows an opcode; 32 opcodes a line. '.': nothing. M: a ModRM byte. B: one byte. H: two
 * bytes. Z: four bytes, or two with the prefix 66. b, z: a ModRM byte and B or Z. X: invalid or
 * not supported.
 */
static const char one[] =
	/* 00 */ "MMMMBZXXMMMMBZXXMMMMBZXXMMMMBZXX"
		 /* 20 */ "MMMMBZXXMMMMBZXXMMMMBZXXMMMMBZXX"
		 /* 40 */ "XXXXXXXXXXXXXXXX................"
		 /* 60 */ "XXXMXXXXZzBb....BBBBBBBBBBBBBBBB"
		 /* 80 */ "bzXbMMMMMMMMMMMM..........X....."
		 /* a0 */ "XXXX....BZ......BBBBBBBBZZZZZZZZ"
		 /* c0 */ "bbH.XXbzX.XX.BXXMMMMXXX.MMMMMMMM"
		 /* e0 */ "BBBBBBBBZZXB....X.XX..MM......MM";

/* behind 0f */
static const char two[] =
	/* 00 */ "MMMMX.....X.XM.XMMMMMMMMMMMMMMMM"
		 /* 20 */ "MMMMXXXXMMMMMMMM......X.XXXXXXXX"
		 /* 40 */ "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM"
		 /* 60 */ "MMMMMMMMMMMMMMMMbbbbMMM.MMXXMMMM"
		 /* 80 */ "ZZZZZZZZZZZZZZZZMMMMMMMMMMMMMMMM"
		 /* a0 */ "...MbMXX...MbMMMMMMMMMMMMMbMMMMM"
		 /* c0 */ "MMbMbbbM........MMMMMMMMMMMMMMMM"
		 /* e0 */ "MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM";
_Static_assert(sizeof(one) == 257 && sizeof(two) == 257, "one for each byte");

static bool next(struct x86_64_parts *p, uint8_t *ret)
{
	if (p->at >= p->n)
		return false;
	*ret = p->code[p->at++];
	return true;
}

/* Reads size bytes as a signed number. */
static bool take(struct x86_64_parts *p, size_t size, int32_t *ret)
{
	int32_t value = 0;
	int16_t half;

	if (p->n - p->at < size)
		return false;
	if (size == 1) {
		/* NOLINTNEXTLINE(bugprone-signed-char-misuse,cert-str34-c): signed */
		value = (int8_t)p->code[p->at];
	} else if (size == 2) {
		memcpy(&half, p->code + p->at, sizeof(half));
		value = half;
	} else {
		memcpy(&value, p->code + p->at, sizeof(value));
	}
	p->at += size;
	*ret = value;
	return true;
}

static bool read_prefixes(struct x86_64_parts *p)
{
	static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
					   0x66, 0x67, 0xf0, 0xf2, 0xf3};
	uint8_t byte;

	while (next(p, &byte)) {
		p->small |= byte == 0x66;
		if (memchr(prefixes, byte, sizeof(prefixes)) != NULL)
			continue;
		if ((byte & 0xf0) == 0x40) {
			p->rex = byte & 0xf;
			if (!next(p, &byte))
				return false;
		}
		p->op = byte;
		return true;
	}
	return false;
}

static bool read_vex(struct x86_64_parts *p)
{
	uint8_t byte;

	if (!next(p, &byte))
		return false;
	p->vex = true;
	p->map = 2;
	if (p->op == 0xc4) {
		p->rex = (uint8_t)((~byte >> 5 & 4) | (~byte >> 5 & 1));
		p->map = (uint8_t)((byte & 0x1f) + 1);
		if (p->map < 2 || p->map > 4 || !next(p, &byte))
			return false;
	}
	return next(p, &p->op);
}

/* Reads an EVEX prefix: three bytes behind 62, of which some bits are fixed, and the opcode. */
static bool read_evex(struct x86_64_parts *p)
{
	uint8_t first, second, third;

	if (!next(p, &first) || !next(p, &second) || !next(p, &third) || (first & 8) != 0 ||
	    (second & 4) == 0)
		return false;
	p->vex = true;
	p->evex = true;
	p->rex = (uint8_t)((~first >> 5 & 4) | (~first >> 5 & 1));
	p->map = (uint8_t)((first & 7) + 1);
	/* Maps of AVX512-FP16 have no constants: their format is 'M', as that of 0f 38. */
	if (p->map == 6 || p->map == 7)
		p->map = 3;
	return p->map >= 2 && p->map <= 4 && next(p, &p->op);
}

static bool read_opcode(struct x86_64_parts *p)
{
	p->map = 1;
	if (!read_prefixes(p))
		return false;
	if (p->op == 0xc4 || p->op == 0xc5)
		return read_vex(p);
	if (p->op == 0x62)
		return read_evex(p);
	if (p->op != 0x0f)
		return true;
	p->map = 2;
	if (!next(p, &p->op))
		return false;
	if (p->op != 0x38 && p->op != 0x3a)
		return true;
	p->map = p->op == 0x38 ? 3 : 4;
	return next(p, &p->op);
}

static bool read_modrm(struct x86_64_parts *p)
{
	uint8_t mod;

	if (!next(p, &p->modrm))
		return false;
	mod = p->modrm >> 6;
	if (mod == 3)
		return true;
	if ((p->modrm & 7) == RSP && !next(p, &p->sib))
		return false;
	if (mod == 1)
		return take(p, 1, &p->displacement);
	if (mod == 2 || (p->modrm & 7) == RBP || ((p->modrm & 7) == RSP && (p->sib & 7) == RBP))
		return take(p, 4, &p->displacement);
	return true;
}

static char format_of(const struct x86_64_parts *p)
{
	if (p->map == 1)
		return one[p->op];
	if (p->map == 2 && p->evex && two[p->op] != 'b')
		return 'M';
	if (p->map == 2)
		return two[p->op];
	return p->map == 3 ? 'M' : 'b';
}

/* Reads an operand of four bytes, or two with prefix 66. Jumps and calls always have four. */
static bool take_operand(struct x86_64_parts *p)
{
	const bool is_far = p->map == 2 || (p->op & 0xfe) == 0xe8;

	return take(p, p->small && !is_far ? 2 : 4, &p->imm);
}

bool x86_64_parts_read(const uint8_t *code, size_t n, struct x86_64_parts *p)
{
	int32_t rest;
	char format;

	*p = (struct x86_64_parts){.code = code, .n = min_size(n, X86_64_INSN_MAX)};
	if (!read_opcode(p))
		return false;
	format = format_of(p);
	if (format == 'X' || (strchr("Mbz", format) != NULL && !read_modrm(p)))
		return false;
	/* In the groups f6 and f7 only test has an operand. */
	if (p->map == 1 && (p->op | 1) == 0xf7 && (p->modrm & 0x30) == 0)
		format = p->op == 0xf6 ? 'b' : 'z';
	switch (format) {
	case 'B':
	case 'b':
		return take(p, 1, &p->imm);
	case 'H':
		return take(p, 2, &p->imm);
	case 'Z':
	case 'z':
		/* mov of a 64-bit constant has four bytes more. */
		return take_operand(p) && (p->map != 1 || (p->op & 0xf8) != 0xb8 ||
					   !(p->rex & X86_64_REX_W) || take(p, 4, &rest));
	}
	return true;
}

static uint8_t reg_of(const struct x86_64_parts *p)
{
	return (uint8_t)((p->modrm >> 3 & 7) | (p->rex & X86_64_REX_R ? 8 : 0));
}

/* Returns the register in ModRM's rm field; 16: memory. */
static uint8_t rm_of(const struct x86_64_parts *p)
{
	return p->modrm >> 6 == 3 ? (uint8_t)((p->modrm & 7) | (p->rex & X86_64_REX_B ? 8 : 0))
				  : 16;
}

/* Returns true if the operand is n(%rsp). */
static bool is_on_stack(const struct x86_64_parts *p)
{
	return p->modrm >> 6 != 3 && (p->modrm & 7) == RSP && p->sib == 0x24 &&
	       !(p->rex & X86_64_REX_B);
}

/* Reads groups 81 and 83: arithmetic with a constant. */
static void read_group(const struct x86_64_parts *p, struct x86_64_insn *ret)
{
	if (rm_of(p) != RSP)
		return;
	switch (p->modrm >> 3 & 7) {
	case 0:
		ret->sp = p->imm;
		break;
	case 5:
		ret->sp = (int32_t) - (uint32_t)p->imm;
		break;
	case 7: /* cmp */
		break;
	default:
		ret->sp_lost = true;
	}
}

/*
 * A jump through n(%rip) is a tail call, as good as a ret. Only in an unbound entry of a PLT it
 * leads to the push behind it.
 */
static enum x86_64_kind kind_of_jump(const struct x86_64_parts *p)
{
	if ((p->modrm & 0xc7) != RBP)
		return X86_64_INSN_END;
	return p->at < p->n && p->code[p->at] == 0x68 ? X86_64_INSN_OTHER : X86_64_INSN_RET;
}

/* Reads group ff: indirect calls and jumps, push. */
static void read_ff(const struct x86_64_parts *p, struct x86_64_insn *ret)
{
	switch (p->modrm >> 3 & 7) {
	case 2:
	case 3:
		ret->kind = X86_64_INSN_CALL;
		break;
	case 4:
	case 5:
		ret->kind = kind_of_jump(p);
		break;
	case 6:
		ret->sp = -8;
		break;
	default:
		ret->sp_lost = rm_of(p) == RSP;
	}
}

static void read_push_pop(const struct x86_64_parts *p, struct x86_64_insn *ret)
{
	const uint8_t reg = (uint8_t)((p->op & 7) | (p->rex & X86_64_REX_B ? 8 : 0));

	if (p->op < 0x58) {
		ret->sp = -8;
		ret->saves_fp = reg == RBP;
		return;
	}
	ret->sp = 8;
	ret->sp_lost = reg == RSP;
	ret->loads_fp = reg == RBP;
	ret->fp_at = 0;
}

/* Reads arithmetic and moves of map 1: whether they write rsp or rbp. */
static void read_write(const struct x86_64_parts *p, struct x86_64_insn *ret)
{
	const bool to_reg = (p->op & 2) != 0;

	if ((p->op & 0xf8) == 0x38 || (p->op & 7) > 3) /* cmp; rax */
		return;
	ret->sp_lost = (to_reg ? reg_of(p) : rm_of(p)) == RSP;
	if (ret->sp_lost && (p->op == 0x89 || p->op == 0x8b) && (p->rex & X86_64_REX_W)) {
		ret->sp_is_copied = p->modrm >> 6 == 3;
		ret->sp_from = ret->sp_is_copied ? (to_reg ? rm_of(p) : reg_of(p)) : 0;
		ret->loads_sp = !ret->sp_is_copied && is_on_stack(p);
		ret->sp_at = ret->loads_sp ? p->displacement : 0;
	}
	if (p->op == 0x8b && reg_of(p) == RBP && is_on_stack(p)) {
		ret->loads_fp = true;
		ret->fp_at = p->displacement;
	}
}

static void read_jump(const struct x86_64_parts *p, enum x86_64_kind kind, struct x86_64_insn *ret)
{
	ret->kind = kind;
	ret->distance = p->imm;
}

static void read_one(const struct x86_64_parts *p, struct x86_64_insn *ret)
{
	if (p->op < 0x40 || (p->op >= 0x88 && p->op <= 0x8b)) {
		read_write(p, ret);
		return;
	}
	if ((p->op & 0xf0) == 0x50) {
		read_push_pop(p, ret);
		return;
	}
	if ((p->op & 0xf0) == 0x70) {
		read_jump(p, X86_64_INSN_BRANCH, ret);
		return;
	}
	switch (p->op) {
	case 0x68:
	case 0x6a:
	case 0x9c:
		ret->sp = -8;
		break;
	case 0x8f:
	case 0x9d:
		ret->sp = 8;
		break;
	case 0x81:
	case 0x83:
		read_group(p, ret);
		break;
	case 0x87: /* xchg */
		ret->sp_lost = reg_of(p) == RSP || rm_of(p) == RSP;
		break;
	case 0x8d: /* lea */
		if (reg_of(p) == RSP && is_on_stack(p))
			ret->sp = p->displacement;
		else
			ret->sp_lost = reg_of(p) == RSP;
		break;
	case 0xc7:
		ret->sp_lost = rm_of(p) == RSP;
		break;
	case 0xc9: /* leave */
		ret->sp_lost = true;
		break;
	case 0xc2:
	case 0xc3:
		ret->kind = X86_64_INSN_RET;
		break;
	case 0xcc:
	case 0xf4: /* int3, hlt */
		ret->kind = X86_64_INSN_END;
		break;
	case 0xe0:
	case 0xe1:
	case 0xe2:
	case 0xe3:
		read_jump(p, X86_64_INSN_BRANCH, ret);
		break;
	case 0xe8:
		read_jump(p, X86_64_INSN_CALL, ret);
		break;
	case 0xe9:
	case 0xeb:
		read_jump(p, X86_64_INSN_JUMP, ret);
		break;
	case 0xff:
		read_ff(p, ret);
		break;
	}
}

bool x86_64_insn_read(const uint8_t *code, size_t n, struct x86_64_insn *ret)
{
	struct x86_64_parts p;

	memset(ret, 0, sizeof(*ret));
	if (!x86_64_parts_read(code, n, &p))
		return false;
	ret->size = p.at;
	if (p.map == 1) {
		read_one(&p, ret);
	} else if (p.map == 2 && !p.vex) {
		if ((p.op & 0xf0) == 0x80)
			read_jump(&p, X86_64_INSN_BRANCH, ret);
		else if (p.op == 0x0b) /* ud2 */
			ret->kind = X86_64_INSN_END;
		else if ((p.op & 0xf0) == 0x40) /* cmov */
			ret->sp_lost = reg_of(&p) == RSP;
		else if ((p.op & 0xf6) == 0xa0) /* push and pop of fs, gs */
			ret->sp = p.op & 1 ? 8 : -8;
	}
	return true;
}
