#include "lib/unwind/space/pc_info.h"

#include <stdlib.h>

#include "lib/unwind/space/code.h"

static const struct rule rule_unmapped;
static const struct rule rule_none;
static const struct rule rule_generated;
static const struct rule rule_root = {
	.cfa = RULE_CFA_SP,
	.fp = RULE_FP_UNDEFINED,
	.ra = RULE_RA_UNDEFINED,
};
static const struct rule rule_other_stack = {
	.cfa = RULE_CFA_SP,
	.fp = RULE_FP_UNDEFINED,
	.ra = RULE_RA_UNDEFINED,
	.switches_stack = true,
};
static const struct rule rule_framed = {
	.cfa = RULE_CFA_FP,
	.cfa_offset = 16,
	.fp = RULE_FP_SAVED,
	.fp_offset = -16,
	.ra_offset = -8,
	.switches_stack = true,
};

static const struct rule *rule_of_switch(const struct image_switch *change)
{
	switch (change->kind) {
	case IMAGE_SWITCH_ROOT:
		return &rule_root;
	case IMAGE_SWITCH_UNKNOWN:
		return &rule_other_stack;
	case IMAGE_SWITCH_FRAMED:
		return &rule_framed;
	}
	return &rule_other_stack;
}

static void look_up(struct unwind_space *s, uint64_t addr, struct pc_info *ret)
{
	struct space_mapping *m = space_certain_mapping(s, addr);
	const struct image_switch *change;
	uint64_t target;

	*ret = (struct pc_info){.addr = addr, .rule = &rule_unmapped};
	if (!m)
		return;
	ret->rule = m->generated ? &rule_generated : &rule_none;
	if (!m->image)
		space_open_perf_map(s);
	if (!m->image || !space_read_image(s, m))
		return;
	ret->image = m->image;
	ret->bias = m->bias;
	ret->rows = image_rows(m->image, addr - m->bias);
	ret->rule = rows_find(ret->rows, addr - m->bias);
	/* The file may be out of reach when the name is asked for. */
	if (s->symbols != UNWIND_SYMBOLS_NONE && plt_covers(&m->image->plt, addr - m->bias))
		(void)!space_read_plt(s, m);
	change = image_switch_at(m->image, addr - m->bias);
	/*
	 * The rule of a stack switch holds at calls only. addr is one below a return address
	 * then.
	 */
	if (change && code_call_before(s, addr + 1, &target) > CODE_CALL_NORETURN)
		ret->rule = rule_of_switch(change);
	/* A part of the rows may have been compiled. */
	s->cache->grown = true;
}

const struct pc_info *pc_info_at(struct unwind_space *s, uint64_t addr)
{
	static struct pc_info uncached;
	struct pc_info *p;

	if (!s->pc_infos) {
		s->pc_infos = calloc(PC_INFOS, sizeof(*s->pc_infos));
		if (!s->pc_infos) {
			look_up(s, addr, &uncached);
			return &uncached;
		}
	}
	p = &s->pc_infos[(addr ^ addr >> 9) % PC_INFOS];
	/* An empty slot has address 0, which is never mapped. */
	if (p->addr != addr || addr == 0)
		look_up(s, addr, p);
	if (p->image) {
		p->image->last_use = s->cache->clock;
		cache_mark_file(s->cache, p->image);
	}
	return p;
}

bool pc_info_same_image(struct unwind_space *s, uint64_t a, uint64_t b)
{
	const struct image *image = pc_info_at(s, a)->image;

	return pc_info_at(s, b)->image == image;
}

bool pc_info_is_unmapped(const struct pc_info *p)
{
	return p->rule == &rule_unmapped;
}

bool pc_info_is_generated(const struct pc_info *p)
{
	return p->rule == &rule_generated;
}
