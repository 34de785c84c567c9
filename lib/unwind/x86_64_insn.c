#include "lib/unwind/x86_64_insn.h"

#include <string.h>

#include "lib/base/util.h"

#define REX_B 1u
#define REX_R 4u
#define REX_W 8u

#define RSP 4u
#define RBP 5u

/*
 * What follows an opcode, 32 of them a row. '.': nothing; M: a ModRM byte; B:
 * a byte; H: two; Z: four, or two with the prefix 66; b and z: a ModRM byte and
 * one of these; X: no instruction, or one that is not known here.
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

/* Behind 0f. */
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

/* An instruction, taken apart. */
struct parts {
	const uint8_t *code;
	size_t n;
	size_t at; /* behind what was read */
	uint8_t rex;
	bool small;  /* the prefix 66: operands of 16 bits */
	uint8_t map; /* 1, 2 (0f), 3 (0f 38), 4 (0f 3a) */
	bool vex;
	uint8_t op;
	uint8_t modrm;
	uint8_t sib;
	int32_t displacement;
	int32_t imm;
};

static bool next(struct parts *p, uint8_t *ret)
{
	if (p->at >= p->n)
		return false;
	*ret = p->code[p->at++];
	return true;
}

/* size bytes, with their sign. */
static bool take(struct parts *p, size_t size, int32_t *ret)
{
	int32_t value = 0;
	int16_t half;

	if (p->n - p->at < size)
		return false;
	if (size == 1) {
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

static bool read_prefixes(struct parts *p)
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

static bool read_vex(struct parts *p)
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

static bool read_opcode(struct parts *p)
{
	p->map = 1;
	if (!read_prefixes(p))
		return false;
	if (p->op == 0xc4 || p->op == 0xc5)
		return read_vex(p);
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

static bool read_modrm(struct parts *p)
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
	if (mod == 2 || (p->modrm & 7) == RBP ||
	    ((p->modrm & 7) == RSP && (p->sib & 7) == RBP))
		return take(p, 4, &p->displacement);
	return true;
}

static char format_of(const struct parts *p)
{
	if (p->map == 1)
		return one[p->op];
	if (p->map == 2)
		return two[p->op];
	return p->map == 3 ? 'M' : 'b';
}

/* Four bytes, or two; of jumps and calls four in any case. */
static bool take_operand(struct parts *p)
{
	const bool is_far = p->map == 2 || (p->op & 0xfe) == 0xe8;

	return take(p, p->small && !is_far ? 2 : 4, &p->imm);
}

static bool read_parts(struct parts *p)
{
	int32_t rest;
	char format;

	if (!read_opcode(p))
		return false;
	format = format_of(p);
	if (format == 'X' || (strchr("Mbz", format) != NULL && !read_modrm(p)))
		return false;
	/* test has an operand in the groups of f6 and f7. */
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
		/* mov $n of 64 bits has four more. */
		return take_operand(p) &&
		       (p->map != 1 || (p->op & 0xf8) != 0xb8 ||
			!(p->rex & REX_W) || take(p, 4, &rest));
	}
	return true;
}

static uint8_t reg_of(const struct parts *p)
{
	return (uint8_t)((p->modrm >> 3 & 7) | (p->rex & REX_R ? 8 : 0));
}

/* A register that modrm names, or 16 for memory. */
static uint8_t rm_of(const struct parts *p)
{
	return p->modrm >> 6 == 3
		       ? (uint8_t)((p->modrm & 7) | (p->rex & REX_B ? 8 : 0))
		       : 16;
}

/* n(%rsp) */
static bool is_on_stack(const struct parts *p)
{
	return p->modrm >> 6 != 3 && (p->modrm & 7) == RSP && p->sib == 0x24 &&
	       !(p->rex & REX_B);
}

/* Of the groups 81 and 83: an operation, with a constant. */
static void read_group(const struct parts *p, struct x86_64_insn *ret)
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

/* The group ff: calls and jumps that are not by distance, and a push. */
static void read_ff(const struct parts *p, struct x86_64_insn *ret)
{
	switch (p->modrm >> 3 & 7) {
	case 2:
	case 3:
		ret->kind = X86_64_INSN_CALL;
		break;
	case 4:
	case 5:
		ret->kind = X86_64_INSN_END;
		break;
	case 6:
		ret->sp = -8;
		break;
	default:
		ret->sp_lost = rm_of(p) == RSP;
	}
}

static void read_push_pop(const struct parts *p, struct x86_64_insn *ret)
{
	const uint8_t reg = (uint8_t)((p->op & 7) | (p->rex & REX_B ? 8 : 0));

	if (p->op < 0x58) {
		ret->sp = -8;
		ret->saves_fp = reg == RBP;
		return;
	}
	ret->sp = 8;
	ret->sp_lost = reg == RSP;
	ret->has_fp = reg == RBP;
	ret->fp = 0;
}

/* What the arithmetic and the moves of the first map write to. */
static void read_write(const struct parts *p, struct x86_64_insn *ret)
{
	const bool to_reg = (p->op & 2) != 0;

	if ((p->op & 0xf8) == 0x38 || (p->op & 7) > 3) /* cmp; rax */
		return;
	ret->sp_lost = (to_reg ? reg_of(p) : rm_of(p)) == RSP;
	if (p->op == 0x8b && reg_of(p) == RBP && is_on_stack(p)) {
		ret->has_fp = true;
		ret->fp = p->displacement;
	}
}

static void read_jump(const struct parts *p, enum x86_64_kind kind,
		      struct x86_64_insn *ret)
{
	ret->kind = kind;
	ret->distance = p->imm;
}

static void read_one(const struct parts *p, struct x86_64_insn *ret)
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
	struct parts p = {.code = code, .n = min_size(n, X86_64_INSN_MAX)};

	memset(ret, 0, sizeof(*ret));
	if (!read_parts(&p))
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
