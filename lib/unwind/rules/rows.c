#include "lib/unwind/rules/rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/array.h"

/* Twice ROWS_RULES_MAX, so that probing is short. */
#define HASH_SIZE (2u * ROWS_RULES_MAX)

static const struct rule no_rule;

void rows_fini(struct rows *r)
{
	free(r->pc);
	free(r->rule);
	free(r->rules);
	free(r->full);
	free(r->ops);
	*r = (struct rows){0};
}

/* Finds the last row that starts at or before vaddr. */
static bool find_row(const struct rows *r, uint64_t vaddr, size_t *ret)
{
	const uint32_t *base = r->pc;
	size_t n = r->n;
	uint32_t pc;

	if (vaddr < r->base || vaddr - r->base > UINT32_MAX || n == 0)
		return false;
	pc = (uint32_t)(vaddr - r->base);
	if (pc < base[0])
		return false;
	/* Without a branch that depends on the data: the compiler makes a cmov. */
	while (n > 1) {
		size_t half = n / 2;

		base = base[half] <= pc ? base + half : base;
		n -= half;
	}
	*ret = (size_t)(base - r->pc);
	return true;
}

const struct rule *rows_find(const struct rows *r, uint64_t vaddr)
{
	size_t i;

	if (!find_row(r, vaddr, &i))
		return &no_rule;
	return &r->rules[r->rule[i] & ~ROWS_START];
}

bool rows_function(const struct rows *r, uint64_t vaddr, uint64_t *ret_start)
{
	size_t i;

	if (!find_row(r, vaddr, &i))
		return false;
	/* A gap belongs to no function, and no function extends over one. */
	for (;; i--) {
		if (r->rule[i] & ROWS_START)
			break;
		if (r->rule[i] == ROWS_RULE_NONE || i == 0)
			return false;
	}
	*ret_start = r->base + r->pc[i];
	return true;
}

int rows_builder_init(struct rows_builder *b, uint64_t base)
{
	memset(b, 0, sizeof(*b));
	b->rows.base = base;
	b->compares = UINT64_MAX;
	b->hash = calloc(HASH_SIZE, sizeof(*b->hash));
	b->rules_cap = 64;
	b->rows.rules = calloc(b->rules_cap, sizeof(*b->rows.rules));
	b->rows.n_rules = 1; /* ROWS_RULE_NONE */
	if (!b->hash || !b->rows.rules) {
		rows_builder_fini(b);
		return -ENOMEM;
	}
	return 0;
}

void rows_builder_fini(struct rows_builder *b)
{
	rows_fini(&b->rows);
	free(b->hash);
	b->hash = NULL;
}

static uint32_t hash_rule(const struct rule *rule)
{
	uint64_t words[3];
	uint64_t h = 0;

	_Static_assert(sizeof(words) == sizeof(*rule), "a rule is 24 bytes");
	memcpy(words, rule, sizeof(words));
	for (size_t i = 0; i < array_size(words); i++)
		h = ((h << 29 | h >> 35) ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(h >> 32);
}

static int rule_number(struct rows_builder *b, const struct rule *rule, uint16_t *ret)
{
	struct rows *r = &b->rows;
	uint32_t slot = hash_rule(rule) % HASH_SIZE;
	int err;

	if (rule->cfa == RULE_CFA_NONE) {
		*ret = ROWS_RULE_NONE;
		return 0;
	}
	for (; b->hash[slot]; slot = (slot + 1) % HASH_SIZE) {
		uint32_t number = b->hash[slot] - 1;

		if (memcmp(&r->rules[number], rule, sizeof(*rule)) == 0) {
			*ret = (uint16_t)number;
			return 0;
		}
	}
	if (r->n_rules >= ROWS_RULES_MAX) {
		b->dropped++;
		*ret = ROWS_RULE_NONE;
		return 0;
	}
	err = array_grow(r->rules, r->n_rules, b->rules_cap);
	if (err)
		return err;
	r->rules[r->n_rules] = *rule;
	b->hash[slot] = (uint32_t)r->n_rules + 1;
	*ret = (uint16_t)r->n_rules++;
	return 0;
}

static int append(struct rows_builder *b, uint64_t vaddr, uint16_t rule)
{
	struct rows *r = &b->rows;

	if (r->n >= ROWS_MAX)
		return -E2BIG;
	if (r->n == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 256;
		uint32_t *pc = reallocarray(r->pc, cap, sizeof(*pc));
		uint16_t *rules;

		if (!pc)
			return -ENOMEM;
		r->pc = pc;
		rules = reallocarray(r->rule, cap, sizeof(*rules));
		if (!rules)
			return -ENOMEM;
		r->rule = rules;
		b->cap = cap;
	}
	r->pc[r->n] = (uint32_t)(vaddr - r->base);
	r->rule[r->n++] = rule;
	return 0;
}

int rows_add(struct rows_builder *b, uint64_t start, uint64_t end, bool is_start,
	     const struct rule *rule)
{
	struct rows *r = &b->rows;
	uint16_t number = ROWS_RULE_NONE;
	int err;

	assert(start < end && start >= b->end);
	/* Images that span more than 4 GiB do not occur. */
	if (start < r->base || end - r->base > UINT32_MAX) {
		b->dropped++;
		return 0;
	}
	err = rule_number(b, rule, &number);
	if (err)
		return err;
	if (b->open && start > b->end) {
		err = append(b, b->end, ROWS_RULE_NONE);
		if (err)
			return err;
		b->open = false;
	}
	if (is_start)
		number |= ROWS_START;
	if (!b->open || number & ROWS_START || r->n == 0 ||
	    (r->rule[r->n - 1] & ~ROWS_START) != number) {
		err = append(b, start, number);
		if (err)
			return err;
	}
	b->open = true;
	b->end = end;
	return 0;
}

int rows_add_full(struct rows_builder *b, const struct full_rule *f, int32_t *ret_index)
{
	struct rows *r = &b->rows;
	int err;

	for (size_t i = 0; i < r->n_full && b->compares > 0; i++, b->compares--) {
		if (memcmp(&r->full[i], f, sizeof(*f)) == 0) {
			*ret_index = (int32_t)i;
			return 0;
		}
	}
	if (r->n_full >= ROWS_FULL_MAX) {
		b->dropped++;
		return -E2BIG;
	}
	err = array_grow(r->full, r->n_full, b->full_cap);
	if (err)
		return err;
	r->full[r->n_full] = *f;
	*ret_index = (int32_t)r->n_full++;
	return 0;
}

int rows_add_ops(struct rows_builder *b, const struct expr_op *ops, size_t n, uint32_t *ret_index)
{
	struct rows *r = &b->rows;
	int err;

	/* Expressions repeat, so an equal one is searched first. */
	for (size_t i = 0; n > 0 && i + n <= r->n_ops && b->compares > 0; i++, b->compares--) {
		if (memcmp(&r->ops[i], ops, n * sizeof(*ops)) == 0) {
			*ret_index = (uint32_t)i;
			return 0;
		}
	}
	if (n > ROWS_OPS_MAX - r->n_ops) {
		b->dropped++;
		return -E2BIG;
	}
	for (size_t i = 0; i < n; i++) {
		err = array_grow(r->ops, r->n_ops + i, b->ops_cap);
		if (err)
			return err;
		r->ops[r->n_ops + i] = ops[i];
	}
	*ret_index = (uint32_t)r->n_ops;
	r->n_ops += n;
	return 0;
}

/* Gives unused memory back. If that fails, the array stays larger. */
static void shrink(void **v, size_t n, size_t size)
{
	void *new = n ? reallocarray(*v, n, size) : NULL;

	if (new)
		*v = new;
}

int rows_finish(struct rows_builder *b, struct rows *ret)
{
	struct rows *r = &b->rows;
	int err;

	if (b->open) {
		err = append(b, b->end, ROWS_RULE_NONE);
		if (err == -E2BIG)
			r->rule[r->n - 1] = ROWS_RULE_NONE;
		else if (err)
			return err;
		b->open = false;
	}
	shrink((void **)&r->pc, r->n, sizeof(*r->pc));
	shrink((void **)&r->rule, r->n, sizeof(*r->rule));
	shrink((void **)&r->rules, r->n_rules, sizeof(*r->rules));
	shrink((void **)&r->full, r->n_full, sizeof(*r->full));
	shrink((void **)&r->ops, r->n_ops, sizeof(*r->ops));
	r->bytes = r->n * (sizeof(*r->pc) + sizeof(*r->rule)) + r->n_rules * sizeof(*r->rules) +
		   r->n_full * sizeof(*r->full) + r->n_ops * sizeof(*r->ops);
	*ret = *r;
	b->rows = (struct rows){0};
	return 0;
}
