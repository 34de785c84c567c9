#include "lib/unwind/walk/memo.h"

#include <stdlib.h>
#include <string.h>

#include "lib/unwind/cpu.h"
#include "lib/unwind/walk/rule_step.h"

#define SP CPU_SP
#define FP CPU_FP
#define PC CPU_PC

#define BIT(n) (UINT64_C(1) << (n))

void memo_begin(struct memo_walk *mw, struct memos *m, uint32_t tid)
{
	mw->memo = m ? memos_get(m, tid) : NULL;
	mw->next = mw->memo && mw->memo->n > 0 ? mw->memo->n - 1 : 0;
	mw->kept = 0;
	mw->n = 0;
	mw->too_long = false;
	mw->n_images = 0;
}

static bool matches(const struct memo_frame *e, const struct walk_frame *f)
{
	bool fp_known = (f->regs.known & BIT(FP)) != 0;

	return e->addr == f->addr && e->sp == f->regs.r[SP] && e->is_leaf == f->is_leaf &&
	       e->fp_known == fp_known && (!fp_known || e->fp == f->regs.r[FP]);
}

/*
 * Returns room for one more frame. Above the limit this is the last slot again, and too_long makes
 * memo_end() discard the walk.
 */
static struct memo_frame *new_frame(struct memo_walk *mw)
{
	if (mw->n < MEMO_FRAMES_MAX)
		return &mw->frames[mw->n++];
	mw->too_long = true;
	return &mw->frames[MEMO_FRAMES_MAX - 1];
}

static void add_image(struct memo_walk *mw, struct image *image)
{
	for (uint32_t i = 0; i < mw->n_images; i++)
		if (mw->images[i] == image)
			return;
	/* An image above the limit is stored, too, to show that there were too many. */
	if (mw->n_images <= MEMO_IMAGES_MAX)
		mw->images[mw->n_images++] = image;
}

/* Records frame f and the step that led to it. */
static void record_frame(struct memo_walk *mw, const struct walk_step *step,
			 const struct walk_frame *f)
{
	int16_t ra_at = (int16_t)step->ra_at;
	int16_t fp_at = step->fp_read ? (int16_t)step->fp_at : 0;
	struct memo_frame *e;

	/* A memo cannot describe this step, so frames below it cannot be kept. */
	if (!step->is_simple || ra_at != step->ra_at ||
	    (step->fp_read && (fp_at == 0 || fp_at != step->fp_at)))
		mw->n = 0;
	/* Written member by member: a struct copy would stall on store forwarding. */
	e = new_frame(mw);
	e->addr = f->addr;
	e->sp = f->regs.r[SP];
	e->fp = f->regs.r[FP];
	e->ra_at = ra_at;
	e->fp_at = fp_at;
	e->fp_known = (f->regs.known & BIT(FP)) != 0;
	e->is_leaf = f->is_leaf;
}

static inline bool read_word(const struct stack_bytes *s, uint64_t at, uint64_t *ret)
{
	uint64_t offset = at - s->lo, size = s->hi - s->lo;

	if (at < s->lo || size < 8 || offset > size - 8)
		return false;
	memcpy(ret, s->bytes + offset, sizeof(*ret));
	return true;
}

/* Returns true if the words on the stack prove that e is the caller of the frame below. */
static inline bool is_caller(struct walk *w, const struct memo_frame *e)
{
	uint64_t ra_at = e->sp + (uint64_t)(int64_t)e->ra_at;
	uint64_t fp_at = e->sp + (uint64_t)(int64_t)e->fp_at;
	uint64_t found;

	if (!read_word(&w->stack, ra_at, &found) || cpu_return_address(found) != e->addr)
		return false;
	if (e->fp_at != 0 && (!read_word(&w->stack, fp_at, &found) || found != e->fp))
		return false;
	w->top = max_u64(w->top, ra_at + 8);
	if (e->fp_at != 0)
		w->top = max_u64(w->top, fp_at + 8);
	return true;
}

static void move_to(struct walk_frame *f, const struct memo_frame *e)
{
	f->addr = e->addr;
	f->is_leaf = false;
	f->by_heuristic = false;
	f->interrupted = false;
	f->sp_is_minimum = false;
	f->pc_info = NULL;
	f->regs.r[SP] = e->sp;
	f->regs.r[FP] = e->fp;
	f->regs.r[PC] = e->addr;
	f->regs.known = BIT(SP) | BIT(PC) | (e->fp_known ? BIT(FP) : 0);
}

bool memo_follow(struct memo_walk *mw, struct walk *w, struct walk_frame *f, size_t max_frames,
		 struct unwind_stack *out)
{
	const struct memo *m = mw->memo;
	uint32_t from, i;

	if (!m)
		return false;
	record_frame(mw, &w->step, f);
	if (w->step.image)
		add_image(mw, w->step.image);
	if (m->n == 0)
		return false;
	while (mw->next > 0 && m->frames[mw->next].sp < f->regs.r[SP])
		mw->next--;
	from = mw->next;
	if (!matches(&m->frames[from], f))
		return false;
	/* Marks the images as used, so that the cache does not drop them. */
	for (i = 0; i < m->n_images; i++) {
		m->images[i]->last_use = w->space->cache->clock;
		add_image(mw, m->images[i]);
	}
	for (i = from; i > 0 && out->n < max_frames; i--) {
		const struct memo_frame *e = &m->frames[i - 1];

		if (!is_caller(w, e))
			break;
		out->frames[out->n++] = (struct unwind_frame){.addr = e->addr};
	}
	if (i == 0) {
		out->shared_n = from + 1;
		out->shared_id = m->id;
		mw->kept = from;
		w->step.is_simple = true;
		return true;
	}
	if (i < from)
		move_to(f, &m->frames[i]);
	for (uint32_t k = from; k > i; k--)
		*new_frame(mw) = m->frames[k - 1];
	mw->next = i;
	return false;
}

/* Stores the frames of the walk above the kept ones. Returns false if the memo cannot hold them. */
static bool store_frames(struct memo_walk *mw, struct memo *m)
{
	size_t n = (size_t)mw->kept + mw->n;
	struct memo_frame *frames;

	if (mw->too_long || n > MEMO_FRAMES_MAX || mw->n_images > MEMO_IMAGES_MAX)
		return false;
	if (n > m->cap) {
		frames = reallocarray(m->frames, n, sizeof(*frames));
		if (!frames)
			return false;
		m->frames = frames;
		m->cap = (uint32_t)n;
	}
	for (uint32_t i = 0; i < mw->n; i++)
		m->frames[n - 1 - i] = mw->frames[i];
	m->n = (uint32_t)n;
	memcpy(m->images, mw->images, mw->n_images * sizeof(m->images[0]));
	m->n_images = mw->n_images;
	return true;
}

void memo_end(struct memo_walk *mw, const struct walk *w, struct unwind_stack *out)
{
	struct memo *m = mw->memo;

	/* Only the leaf has is_leaf, so if all frames are shared, the stacks are equal. */
	out->id = out->shared_n == out->n ? out->shared_id : ++w->space->cache->stack_ids;
	if (!m)
		return;
	if (out->end != UNWIND_END_ROOT || !w->step.is_simple || !store_frames(mw, m))
		m->n = 0;
	m->id = out->id;
}
