#include "lib/unwind/x86_64_way.h"

#include "lib/base/util.h"
#include "lib/unwind/x86_64_insn.h"

/* Where ways part: what was not gone yet, and where they went. */
#define PENDING_MAX 64
#define VISITED_MAX 512
/* Read at once; more than most ways from one jump to the next take. */
#define WINDOW 128

struct state {
	uint64_t at;
	int64_t offset; /* from the first stack pointer to this one */
	int64_t fp;	/* where rbp was loaded from, or FP_SAME */
};

#define FP_SAME INT64_MIN

struct ways {
	struct x86_64_code *code;
	struct state pending[PENDING_MAX];
	size_t n_pending;
	uint64_t visited[VISITED_MAX];
	size_t n_visited;
	uint8_t window[WINDOW];
	uint64_t window_at;
	size_t window_size;
};

/* The instruction at an address. False if there is none, or too many were. */
static bool read_insn(struct ways *w, uint64_t at, struct x86_64_insn *ret)
{
	const bool inside =
		at >= w->window_at && at - w->window_at <= w->window_size &&
		w->window_size - (at - w->window_at) >= X86_64_INSN_MAX;

	if (w->code->steps >= w->code->steps_max)
		return false;
	w->code->steps++;
	if (!inside) {
		w->window_at = at;
		w->window_size = w->code->read(w->code->ctx, at, w->window,
					       sizeof(w->window));
	}
	return x86_64_insn_read(w->window + (at - w->window_at),
				w->window_size - (at - w->window_at), ret);
}

/* False if a way has come to this address before, or there is no room. */
static bool visit(struct ways *w, uint64_t at)
{
	for (size_t i = 0; i < w->n_visited; i++)
		if (w->visited[i] == at)
			return false;
	if (w->n_visited == VISITED_MAX)
		return false;
	w->visited[w->n_visited++] = at;
	return true;
}

/* The last place where ways parted, if another is to be gone from there. */
static bool go_back(struct ways *w, struct state *s)
{
	while (w->n_pending > 0) {
		*s = w->pending[--w->n_pending];
		if (visit(w, s->at))
			return true;
	}
	return false;
}

/* One instruction further. False where this way ends. */
static bool go_on(struct ways *w, const struct x86_64_insn *insn,
		  struct state *s)
{
	const uint64_t after = s->at + insn->size;
	const uint64_t target = after + (uint64_t)(int64_t)insn->distance;

	if (insn->has_fp)
		s->fp = s->offset + insn->fp;
	s->offset += insn->sp;
	if (insn->sp_lost || s->offset > X86_64_WAY_MAX ||
	    s->offset < -(int64_t)X86_64_WAY_MAX)
		return false;
	s->at = after;
	switch (insn->kind) {
	case X86_64_INSN_OTHER:
	case X86_64_INSN_CALL:
		return true;
	case X86_64_INSN_BRANCH:
		if (w->n_pending < PENDING_MAX)
			w->pending[w->n_pending++] =
				(struct state){target, s->offset, s->fp};
		return true;
	case X86_64_INSN_JUMP:
		s->at = target;
		return visit(w, target);
	case X86_64_INSN_RET:
	case X86_64_INSN_END:
		return false;
	}
	return false;
}

static bool is_offset(int64_t offset)
{
	return offset >= 0 && offset < X86_64_WAY_MAX && offset % 8 == 0;
}

static bool find_ret(struct x86_64_code *c, uint64_t vaddr, bool with_calls,
		     struct x86_64_way *ret)
{
	struct ways w = {.code = c};
	struct state s = {vaddr, 0, FP_SAME};
	bool more = true;

	while (more) {
		struct x86_64_insn insn;

		if (!read_insn(&w, s.at, &insn)) {
			more = go_back(&w, &s);
			continue;
		}
		if (insn.kind == X86_64_INSN_RET && is_offset(s.offset) &&
		    (s.fp == FP_SAME || is_offset(s.fp))) {
			ret->ra = (uint32_t)s.offset;
			ret->fp = s.fp == FP_SAME ? X86_64_WAY_FP_SAME
						  : (uint32_t)s.fp;
			ret->has_call = with_calls;
			return true;
		}
		if ((insn.kind == X86_64_INSN_CALL && !with_calls) ||
		    !go_on(&w, &insn, &s))
			more = go_back(&w, &s);
	}
	return false;
}

bool x86_64_way_back(struct x86_64_code *c, uint64_t vaddr,
		     struct x86_64_way *ret)
{
	return find_ret(c, vaddr, false, ret) || find_ret(c, vaddr, true, ret);
}

bool x86_64_way_there(struct x86_64_code *c, uint64_t from, uint64_t to,
		      struct x86_64_way *ret)
{
	struct ways w = {.code = c};
	struct state s = {from, 0, FP_SAME};
	bool more = true;

	while (more) {
		struct x86_64_insn insn;

		if (s.at == to && is_offset(-s.offset)) {
			*ret = (struct x86_64_way){
				.ra = (uint32_t)-s.offset,
				.fp = X86_64_WAY_FP_SAME,
			};
			if (s.fp != FP_SAME && is_offset(s.fp - s.offset))
				ret->fp = (uint32_t)(s.fp - s.offset);
			return true;
		}
		if (!read_insn(&w, s.at, &insn)) {
			more = go_back(&w, &s);
			continue;
		}
		/* What is loaded again on the way was not the caller's. */
		insn.has_fp = insn.saves_fp;
		insn.fp = -8;
		if (!go_on(&w, &insn, &s))
			more = go_back(&w, &s);
	}
	return false;
}
