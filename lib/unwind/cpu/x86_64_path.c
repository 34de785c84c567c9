#include "lib/unwind/cpu/x86_64_path.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/unwind/cpu/x86_64_insn.h"

/* Branches that were not followed yet. */
#define PENDING_MAX 64
/* Instructions that were visited, in a table of twice as many slots. */
#define VISITED_MAX   4096
#define VISITED_SLOTS (2 * VISITED_MAX)
/* Slots that are compared. Code can be made so that all of them collide. */
#define PROBES_MAX 64
/* Bytes read at a time: more than most paths have between two jumps. */
#define WINDOW 128

struct state {
	uint64_t at;
	int64_t offset; /* of the stack pointer, from the first one */
	int64_t fp;	/* where rbp was loaded from, or FP_SAME */
	/* Where the path pushed rbp, or NOWHERE, and the value of fp then. */
	int64_t pushed;
	int64_t pushed_fp;
	/* What offset counts from, as in struct x86_64_path. */
	enum x86_64_base base;
	uint32_t base_at;
};

#define FP_SAME INT64_MIN
#define NOWHERE INT64_MIN

struct paths {
	struct x86_64_code *code;
	struct state pending[PENDING_MAX];
	size_t n_pending;
	/* address minus first, plus 1; 0: empty */
	uint32_t visited[VISITED_SLOTS];
	size_t n_visited;
	uint64_t first;
	uint8_t window[WINDOW];
	uint64_t window_at;
	size_t window_size;
};

/*
 * Decodes the instruction at an address. Returns false if it is invalid, or the limit is reached.
 */
static bool read_insn(struct paths *w, uint64_t at, struct x86_64_insn *ret)
{
	const bool inside = at >= w->window_at && at - w->window_at <= w->window_size &&
			    w->window_size - (at - w->window_at) >= X86_64_INSN_MAX;

	if (w->code->steps >= w->code->steps_max)
		return false;
	w->code->steps++;
	if (!inside) {
		w->window_at = at;
		w->window_size = w->code->read(w->code->ctx, at, w->window, sizeof(w->window));
	}
	return x86_64_insn_read(w->window + (at - w->window_at),
				w->window_size - (at - w->window_at), ret);
}

/* Returns false if the address was visited before, or the table is full. */
static bool visit(struct paths *w, uint64_t at)
{
	const uint32_t mark = (uint32_t)(at - w->first) + 1;
	size_t i = mark * UINT32_C(0x9e3779b1) % VISITED_SLOTS;

	if (mark == 0 || w->n_visited == VISITED_MAX)
		return false;
	for (size_t n = 0; w->visited[i] != 0; i = (i + 1) % VISITED_SLOTS)
		if (w->visited[i] == mark || ++n == PROBES_MAX)
			return false;
	w->visited[i] = mark;
	w->n_visited++;
	return true;
}

static struct state start_state(uint64_t vaddr)
{
	return (struct state){
		.at = vaddr,
		.fp = FP_SAME,
		.pushed = NOWHERE,
		.pushed_fp = FP_SAME,
	};
}

/* Continues with the last branch that was not followed. Returns false if there is none. */
static bool take_pending(struct paths *w, struct state *s)
{
	if (w->n_pending == 0)
		return false;
	*s = w->pending[--w->n_pending];
	return true;
}

/* Executes one instruction. Returns false if the path ends there. */
static bool execute(struct paths *w, const struct x86_64_insn *insn, struct state *s)
{
	const uint64_t after = s->at + insn->size;
	const uint64_t target = after + (uint64_t)(int64_t)insn->distance;

	if (insn->loads_fp) {
		s->fp = s->offset + insn->fp_at;
		if (s->fp == s->pushed)
			s->fp = s->pushed_fp;
	} else if (insn->saves_fp) {
		s->pushed = s->offset + insn->sp;
		s->pushed_fp = s->fp;
	}
	s->offset += insn->sp;
	if (insn->sp_lost || s->offset > X86_64_PATH_MAX || s->offset < -(int64_t)X86_64_PATH_MAX)
		return false;
	s->at = after;
	switch (insn->kind) {
	case X86_64_INSN_OTHER:
	case X86_64_INSN_CALL:
		return true;
	case X86_64_INSN_BRANCH:
		if (w->n_pending < PENDING_MAX) {
			w->pending[w->n_pending] = *s;
			w->pending[w->n_pending++].at = target;
		}
		return true;
	case X86_64_INSN_JUMP:
		s->at = target;
		return true;
	case X86_64_INSN_RET:
	case X86_64_INSN_END:
		return false;
	}
	return false;
}

static bool is_offset(int64_t offset)
{
	return offset >= 0 && offset < X86_64_PATH_MAX && offset % 8 == 0;
}

/* Returns true if fp was saved near the return address: among the first registers. */
static bool is_near(const struct state *s)
{
	return s->fp == FP_SAME ||
	       (is_offset(s->fp) && s->fp < s->offset && s->offset - s->fp < X86_64_PATH_FP_MAX);
}

/*
 * Returns how many bytes the target of the jump at this address pops beside the return address: 16
 * if the target is the dynamic linker, which pops two words. That jump is in the first entry of a
 * PLT, behind a push.
 */
static int64_t popped_by_target(const struct x86_64_code *c, uint64_t at)
{
	uint8_t code[8]; /* push n(%rip); jmp *n(%rip) */

	return c->read(c->ctx, at - 6, code, sizeof(code)) == sizeof(code) && code[0] == 0xff &&
			       code[1] == 0x35 && code[6] == 0xff && code[7] == 0x25
		       ? 16
		       : 0;
}

/*
 * If the instruction sets rsp from a register, or from a word on the stack, lets the offsets count
 * from there, once on a path. Returns false if they cannot.
 */
static bool change_base(const struct x86_64_insn *insn, struct state *s)
{
	/* DWARF's numbers: System V psABI for AMD64, figure 3.36 */
	static const uint8_t dwarf[] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	const int64_t at = s->offset + insn->sp_at;

	if (s->base != X86_64_BASE_SP || s->fp != FP_SAME || s->pushed != NOWHERE)
		return false;
	if (insn->sp_is_copied) {
		s->base = X86_64_BASE_VALUE;
		s->base_at = dwarf[insn->sp_from];
	} else {
		if (!insn->loads_sp || !is_offset(at) || at >= X86_64_PATH_BASE_MAX)
			return false;
		s->base = X86_64_BASE_WORD;
		s->base_at = (uint32_t)at;
	}
	s->at += insn->size;
	s->offset = 0;
	return true;
}

static bool find_ret(struct x86_64_code *c, uint64_t vaddr, bool with_calls,
		     struct x86_64_path *ret)
{
	struct paths w = {.code = c, .first = vaddr};
	struct state s = start_state(vaddr);
	bool more = true;

	while (more) {
		struct x86_64_insn insn;

		if (!visit(&w, s.at) || !read_insn(&w, s.at, &insn)) {
			more = take_pending(&w, &s);
			continue;
		}
		if (insn.kind == X86_64_INSN_RET)
			s.offset += popped_by_target(c, s.at);
		if (insn.kind == X86_64_INSN_RET && is_offset(s.offset) && is_near(&s) &&
		    (s.base == X86_64_BASE_SP || s.offset <= X86_64_PATH_POPS_MAX)) {
			*ret = (struct x86_64_path){
				.ra = (uint32_t)s.offset,
				.fp = s.fp == FP_SAME ? X86_64_PATH_FP_SAME : (uint32_t)s.fp,
				.has_call = with_calls,
				.base = s.base,
				.base_at = s.base_at,
			};
			return true;
		}
		if (insn.sp_lost && change_base(&insn, &s))
			continue;
		if ((insn.kind == X86_64_INSN_CALL && !with_calls) || !execute(&w, &insn, &s))
			more = take_pending(&w, &s);
	}
	return false;
}

bool x86_64_path_to_ret(struct x86_64_code *c, uint64_t vaddr, struct x86_64_path *ret)
{
	return find_ret(c, vaddr, false, ret) || find_ret(c, vaddr, true, ret);
}

bool x86_64_path_from_start(struct x86_64_code *c, uint64_t from, uint64_t to,
			    struct x86_64_path *ret)
{
	struct paths w = {.code = c, .first = from};
	struct state s = start_state(from);
	bool more = true;

	while (more) {
		struct x86_64_insn insn;

		if (s.at == to && is_offset(-s.offset)) {
			*ret = (struct x86_64_path){
				.ra = (uint32_t)-s.offset,
				.fp = X86_64_PATH_FP_SAME,
			};
			if (s.fp < 0 && s.fp > -(int64_t)X86_64_PATH_FP_MAX &&
			    is_offset(s.fp - s.offset))
				ret->fp = (uint32_t)(s.fp - s.offset);
			return true;
		}
		if (!visit(&w, s.at) || !read_insn(&w, s.at, &insn)) {
			more = take_pending(&w, &s);
			continue;
		}
		/* An rbp that the path itself saved and loaded is not the caller's. */
		insn.loads_fp = insn.saves_fp;
		insn.fp_at = -8;
		if (!execute(&w, &insn, &s))
			more = take_pending(&w, &s);
	}
	return false;
}

bool x86_64_installs_handler(const uint8_t *code, size_t n)
{
	static const uint8_t to_rsp[] = {0x48, 0x89, 0xcc};
	static const uint8_t to_rcx[] = {0xff, 0xe1};
	static const uint8_t incssp[] = {0xf3, 0x48, 0x0f, 0xae};
	unsigned int calls = 0;
	struct x86_64_insn insn;

	for (size_t at = 0; x86_64_insn_read(code + at, n - at, &insn);) {
		const uint8_t *bytes = code + at;
		size_t forward = insn.distance > 0 ? (size_t)insn.distance : 0;

		if (insn.size == sizeof(to_rsp) && memcmp(bytes, to_rsp, sizeof(to_rsp)) == 0)
			return true;
		at += insn.size;
		forward = min_size(forward, n - at);
		switch (insn.kind) {
		case X86_64_INSN_OTHER:
			break;
		case X86_64_INSN_CALL:
			if (++calls > 1)
				return false;
			break;
		case X86_64_INSN_JUMP:
			if (forward == 0)
				return false;
			at += forward;
			break;
		case X86_64_INSN_BRANCH:
			/* The branch must skip the code that unwinds a shadow stack. */
			if (forward > 0 && !memmem(code + at, forward, incssp, sizeof(incssp)))
				return false;
			break;
		case X86_64_INSN_RET:
			return false;
		case X86_64_INSN_END:
			return insn.size == sizeof(to_rcx) &&
			       memcmp(bytes, to_rcx, sizeof(to_rcx)) == 0;
		}
	}
	return false;
}
