#include "lib/unwind/x86_64_install.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/unwind/x86_64_insn.h"

/* gcc 12 needs 24 from the last store to the jump, with a shadow stack 33. */
#define STEPS_MAX 64

/* Zeros behind an instruction: operands are taken before they are looked at. */
#define ROOM 8

#define NONE X86_64_N_REGS

#define REX_B 1u
#define REX_X 2u
#define REX_R 4u
#define REX_W 8u

/* An instruction's parts, as far as those have them that are known here. */
struct parts {
	uint8_t prefix; /* f3, or 0 */
	bool small;	/* operands of 16 bits */
	uint8_t rex;
	bool is_0f;
	uint8_t op;
	const uint8_t *rest; /* behind the opcode */
	size_t n;
	size_t size; /* of all of it */
};

/* Does the code lead on? */
enum step { STEP_ON, STEP_DONE, STEP_OTHER };

struct run {
	struct x86_64_install *m;
	bool read_shadow; /* was asked for a shadow stack: none, as a rule */
	bool moved_sp;	  /* it is the handler's now, from rcx */
	unsigned int n_stores;
};

static unsigned int dwarf_reg(unsigned int reg)
{
	static const uint8_t low[] = {X86_64_RAX, X86_64_RCX, X86_64_RDX,
				      X86_64_RBX, X86_64_RSP, X86_64_RBP,
				      X86_64_RSI, X86_64_RDI};

	return reg < array_size(low) ? low[reg] : reg;
}

static bool has(const struct x86_64_install *m, unsigned int reg)
{
	return (m->known >> reg & 1) != 0;
}

static void set(struct x86_64_install *m, unsigned int reg, bool known,
		uint64_t value)
{
	m->known = (m->known & ~(1u << reg)) | (uint32_t)known << reg;
	m->r[reg] = value;
	m->loaded_from[reg] = 0;
}

static bool load(const struct x86_64_install *m, uint64_t addr, uint64_t *ret)
{
	for (size_t i = m->n_stored; i-- > 0;) {
		if (m->stored[i].addr == addr) {
			*ret = m->stored[i].value;
			return true;
		}
	}
	return m->word(m->ctx, addr, ret);
}

static unsigned int reg_of(const struct parts *p)
{
	return dwarf_reg((p->rest[0] >> 3 & 7) | (p->rex & REX_R ? 8u : 0));
}

/* The register in the last bits of an opcode, of modrm or of a base. */
static unsigned int low_reg(const struct parts *p, uint8_t bits)
{
	return dwarf_reg((bits & 7) | (p->rex & REX_B ? 8u : 0));
}

/* The register that modrm names; NONE: memory. */
static unsigned int rm_of(const struct parts *p)
{
	return p->rest[0] >> 6 == 3 ? low_reg(p, p->rest[0]) : NONE;
}

/* Adds a register, times 1 << shift. False: it is not known. */
static bool add_reg(const struct x86_64_install *m, unsigned int reg,
		    unsigned int shift, uint64_t *sum)
{
	*sum += m->r[reg] << shift;
	return has(m, reg);
}

/* The address that modrm means. False: not known; by rip is none. */
static bool address_of(const struct x86_64_install *m, const struct parts *p,
		       uint64_t *ret)
{
	const unsigned int mod = p->rest[0] >> 6;
	const bool has_sib = (p->rest[0] & 7) == 4;
	const uint8_t base = has_sib ? p->rest[1] & 7 : p->rest[0] & 7;
	const uint8_t *at = p->rest + 1 + has_sib;
	bool known = mod != 0 || base != 5;
	int32_t wide = 0;

	if (mod == 1)
		wide = (int8_t)*at;
	else if (mod == 2)
		memcpy(&wide, at, sizeof(wide));
	*ret = (uint64_t)(int64_t)wide;
	known &= add_reg(m, low_reg(p, base), 0, ret);
	if (has_sib) {
		const unsigned int index =
			(p->rest[1] >> 3 & 7) | (p->rex & REX_X ? 8u : 0);

		if (index != 4)
			known &= add_reg(m, dwarf_reg(index), p->rest[1] >> 6,
					 ret);
	}
	return known;
}

static void load_to(struct x86_64_install *m, unsigned int reg, bool known,
		    uint64_t addr)
{
	uint64_t value = 0;
	const bool read = known && load(m, addr, &value);

	set(m, reg, read, value);
	m->loaded_from[reg] = known ? addr : 0;
}

static enum step move(struct run *run, const struct parts *p)
{
	const unsigned int reg = reg_of(p), rm = rm_of(p);
	const unsigned int from = p->op == 0x89 ? reg : rm;
	const unsigned int to = p->op == 0x89 ? rm : reg;
	struct x86_64_install *m = run->m;
	uint64_t addr = 0;
	bool known;

	if (rm != NONE) {
		set(m, to, has(m, from), m->r[from]);
		/* eh_return's mark: where to is in rcx. */
		if (to == X86_64_RSP && from != X86_64_RCX)
			return STEP_OTHER;
		run->moved_sp |= to == X86_64_RSP;
		return STEP_ON;
	}
	known = address_of(m, p, &addr);
	if (p->op == 0x8b) {
		load_to(m, reg, known, addr);
	} else if (++run->n_stores > X86_64_INSTALL_STORES) {
		return STEP_OTHER;
	} else if (known && has(m, reg)) {
		m->stored[m->n_stored].addr = addr;
		m->stored[m->n_stored++].value = m->r[reg];
	}
	return STEP_ON;
}

static enum step lea(struct x86_64_install *m, const struct parts *p)
{
	const unsigned int to = reg_of(p);
	uint64_t addr = 0;
	bool known;

	if (rm_of(p) != NONE || to == X86_64_RSP)
		return STEP_OTHER;
	known = address_of(m, p, &addr);
	set(m, to, known, addr);
	return STEP_ON;
}

static void pop(struct x86_64_install *m, unsigned int to)
{
	const uint64_t sp = m->r[X86_64_RSP];

	set(m, X86_64_RSP, has(m, X86_64_RSP), sp + 8);
	load_to(m, to, has(m, X86_64_RSP), sp);
}

/* Of 0f: what does nothing, and the shadow stack's instructions. */
static enum step two_bytes(struct run *run, const struct parts *p)
{
	if (p->op == 0x1f) /* nop */
		return STEP_ON;
	if (p->prefix != 0xf3)
		return STEP_OTHER;
	if (p->op == 0x1e) { /* endbr64; rdsspq */
		run->read_shadow = (p->rest[0] & 0xf8) == 0xc8;
		return STEP_ON;
	}
	return p->op == 0xae && (p->rest[0] & 0xf8) == 0xe8 /* incsspq */
		       ? STEP_ON
		       : STEP_OTHER;
}

static enum step one_byte(struct run *run, const struct parts *p)
{
	struct x86_64_install *m = run->m;

	if (p->op == 0x90)
		return STEP_ON;
	if (p->small)
		return STEP_OTHER;
	if ((p->op & 0xf8) == 0x58) {
		pop(m, low_reg(p, p->op));
		return STEP_ON;
	}
	if ((p->op & 0xf8) == 0xb8 && !(p->rex & REX_W)) { /* mov $n */
		uint32_t n;

		memcpy(&n, p->rest, sizeof(n));
		set(m, low_reg(p, p->op), true, n);
		return STEP_ON;
	}
	if (p->op == 0x31 && p->rest[0] >> 6 == 3 && reg_of(p) == rm_of(p)) {
		set(m, rm_of(p), true, 0); /* xor of one with itself */
		return STEP_ON;
	}
	if (!(p->rex & REX_W) && p->op != 0xc9)
		return STEP_OTHER;
	switch (p->op) {
	case 0x85: /* test */
	case 0x3d: /* cmp $n,%rax */
		return STEP_ON;
	case 0x2d: /* sub $n,%rax */
		set(m, X86_64_RAX, false, 0);
		return STEP_ON;
	case 0x89:
	case 0x8b:
		return move(run, p);
	case 0x8d:
		return lea(m, p);
	case 0xc9: /* leave */
		set(m, X86_64_RSP, has(m, X86_64_RBP), m->r[X86_64_RBP]);
		pop(m, X86_64_RBP);
		return STEP_ON;
	}
	return STEP_OTHER;
}

/* code has an instruction, and zeros behind it. */
static struct parts take_apart(const uint8_t *code, size_t size)
{
	struct parts p = {.size = size};

	for (; *code == 0xf3 || *code == 0x66 || *code == 0x2e || *code == 0x3e;
	     code++) {
		if (*code == 0xf3)
			p.prefix = 0xf3;
		p.small |= *code == 0x66;
	}
	if ((*code & 0xf0) == 0x40)
		p.rex = *code++ & 0xf;
	p.is_0f = *code == 0x0f;
	code += p.is_0f;
	p.op = *code++;
	p.rest = code;
	return p;
}

bool x86_64_install_is_hook(const uint8_t *code, size_t n)
{
	struct x86_64_insn insn;
	size_t at = 0;

	while (at < n && x86_64_insn_read(code + at, n - at, &insn)) {
		const uint8_t *c =
			code + at + (code[at] == 0xf3 || code[at] == 0x66);

		if (insn.kind == X86_64_INSN_RET)
			return true;
		/* endbr64; nops, one of which may be a probe */
		if (c[0] != 0x90 &&
		    (c[0] != 0x0f || (c[1] != 0x1e && c[1] != 0x1f)))
			return false;
		at += insn.size;
	}
	return false;
}

/* The one call on the way is for debuggers: the handler's CFA, its address. */
static enum step call(struct x86_64_install *m, uint64_t target)
{
	uint8_t code[X86_64_INSTALL_HOOK_MAX];
	size_t n = m->code(m->ctx, target, code, sizeof(code));

	m->cfa_from = m->loaded_from[X86_64_RDI];
	m->pc_from = m->loaded_from[X86_64_RSI];
	return x86_64_install_is_hook(code, n) ? STEP_ON : STEP_OTHER;
}

/* The last one: ret, or a jump by a register, once sp is the handler's. */
static enum step jump_away(struct run *run, const struct parts *p)
{
	struct x86_64_install *m = run->m;
	unsigned int by;

	if (!run->moved_sp)
		return STEP_OTHER;
	if (p->op == 0xc3) {
		pop(m, X86_64_RIP);
		return STEP_DONE;
	}
	by = p->op == 0xff ? rm_of(p) : NONE;
	if (by == NONE)
		return STEP_OTHER;
	set(m, X86_64_RIP, has(m, by), m->r[by]);
	return STEP_DONE;
}

static enum step step(struct run *run, const uint8_t *code,
		      const struct x86_64_insn *insn, uint64_t *at)
{
	const struct parts p = take_apart(code, insn->size);
	const bool shadow = run->read_shadow;
	uint64_t target;

	*at += insn->size;
	target = *at + (uint64_t)(int64_t)insn->distance;
	switch (insn->kind) {
	case X86_64_INSN_OTHER:
		/* The test of what was read stands in between. */
		run->read_shadow = shadow && !p.is_0f && p.op == 0x85;
		return p.is_0f ? two_bytes(run, &p) : one_byte(run, &p);
	case X86_64_INSN_CALL:
		return p.op == 0xe8 ? call(run->m, target) : STEP_OTHER;
	case X86_64_INSN_BRANCH:
		/* Without a shadow stack, past what goes back in it. */
		if (!shadow && insn->distance >= 0)
			return STEP_OTHER;
		if (shadow)
			*at = target;
		return STEP_ON;
	case X86_64_INSN_JUMP:
		*at = target;
		return STEP_ON;
	case X86_64_INSN_RET:
	case X86_64_INSN_END:
		return jump_away(run, &p);
	}
	return STEP_OTHER;
}

static bool is_read_of_shadow(const uint8_t *code)
{
	return memcmp(code, "\xf3\x48\x0f\x1e", 4) == 0 &&
	       (code[4] & 0xf8) == 0xc8;
}

/* What the instructions in front of here have done is no more to be seen. */
static void look_back(struct run *run, uint64_t at)
{
	const struct x86_64_install *m = run->m;
	uint8_t code[8];

	if (m->code(m->ctx, at - sizeof(code), code, sizeof(code)) <
	    sizeof(code))
		return;
	run->moved_sp = memcmp(code + 5, "\x48\x89\xcc", 3) == 0 ||
			memcmp(code + 4, "\x48\x89\xcc\x59", 4) == 0;
	run->read_shadow =
		is_read_of_shadow(code + 3) ||
		(is_read_of_shadow(code) && code[5] == 0x48 && code[6] == 0x85);
}

bool x86_64_install_run(struct x86_64_install *m)
{
	struct run run = {.m = m};
	uint64_t at = m->r[X86_64_RIP];

	m->n_stored = 0;
	m->cfa_from = 0;
	m->pc_from = 0;
	memset(m->loaded_from, 0, sizeof(m->loaded_from));
	look_back(&run, at);
	for (m->steps = 0; m->steps < STEPS_MAX; m->steps++) {
		uint8_t code[X86_64_INSN_MAX + ROOM] = {0};
		size_t n = m->code(m->ctx, at, code, X86_64_INSN_MAX);
		struct x86_64_insn insn;
		enum step s;

		if (!x86_64_insn_read(code, n, &insn))
			return false;
		s = step(&run, code, &insn, &at);
		if (s != STEP_ON)
			return s == STEP_DONE;
	}
	return false;
}
