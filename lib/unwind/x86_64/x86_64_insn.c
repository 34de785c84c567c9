#include "lib/unwind/x86_64/x86_64_insn.h"

#include <string.h>

#include "lib/unwind/x86_64/x86_64_parts.h"

#define RSP 4u
#define RBP 5u

static uint8_t reg_of(const struct x86_64_parts *p)
{
	return (uint8_t)((p->modrm >> 3 & 7) | (p->rex & X86_64_REX_R ? 8 : 0));
}

/* A register that modrm names, or 16 for memory. */
static uint8_t rm_of(const struct x86_64_parts *p)
{
	return p->modrm >> 6 == 3 ? (uint8_t)((p->modrm & 7) | (p->rex & X86_64_REX_B ? 8 : 0))
				  : 16;
}

/* n(%rsp) */
static bool is_on_stack(const struct x86_64_parts *p)
{
	return p->modrm >> 6 != 3 && (p->modrm & 7) == RSP && p->sib == 0x24 &&
	       !(p->rex & X86_64_REX_B);
}

/* Of the groups 81 and 83: an operation, with a constant. */
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
 * A jump to where n(%rip) points hands the return address on, as a ret would.
 * In an entry of a PLT it leads to the push behind it until it is bound.
 */
static enum x86_64_kind kind_of_jump(const struct x86_64_parts *p)
{
	if ((p->modrm & 0xc7) != RBP)
		return X86_64_INSN_END;
	return p->at < p->n && p->code[p->at] == 0x68 ? X86_64_INSN_OTHER : X86_64_INSN_RET;
}

/* The group ff: calls and jumps that are not by distance, and a push. */
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
	ret->has_fp = reg == RBP;
	ret->fp = 0;
}

/* What the arithmetic and the moves of the first map write to. */
static void read_write(const struct x86_64_parts *p, struct x86_64_insn *ret)
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
