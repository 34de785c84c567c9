#include "proto/export/covered.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/base/array.h"

void covered_fini(struct covered *c)
{
	free(c->spans);
	*c = (struct covered){0};
}

bool covered_find_gap(const struct covered *c, uint64_t *start_ns, uint64_t end_ns,
		      uint64_t *ret_end_ns)
{
	const uint64_t start = *start_ns;
	size_t i;

	if (c->n > c->n_settled)
		*start_ns = max_u64(start, c->spans[c->n - 1].end_ns);
	/* The first span that ends later. */
	i = array_upper_bound(c->spans, c->n_settled, end_ns, *start_ns);
	if (i < c->n_settled && c->spans[i].start_ns <= *start_ns)
		*start_ns = c->spans[i++].end_ns;
	*ret_end_ns = i < c->n_settled ? min_u64(c->spans[i].start_ns, end_ns) : end_ns;
	return *start_ns < end_ns || (start == end_ns && *start_ns == end_ns);
}

/* Most threads have one span, so array_grow(), which begins with room for 64, is not used. */
static int make_room(struct covered *c)
{
	const size_t more = c->cap + c->cap / 2 + 1;
	struct covered_span *spans;

	if (c->n < c->cap)
		return 0;
	spans = reallocarray(c->spans, more, sizeof(*spans));
	if (spans == NULL)
		return -ENOMEM;
	c->spans = spans;
	c->cap = more;
	return 0;
}

/* Adds a span after the last one of spans, to which it is joined if it begins at its end. */
static void append(struct covered_span *spans, size_t *n, struct covered_span span)
{
	if (*n > 0 && spans[*n - 1].end_ns == span.start_ns)
		spans[*n - 1].end_ns = span.end_ns;
	else
		spans[(*n)++] = span;
}

int covered_add(struct covered *c, uint64_t start_ns, uint64_t end_ns)
{
	int r;

	if (start_ns == end_ns)
		return 0;
	r = make_room(c);
	if (r == 0)
		append(c->spans, &c->n, (struct covered_span){start_ns, end_ns});
	return r;
}

int covered_settle(struct covered *c)
{
	struct covered_span *sorted;
	size_t i = 0, j = c->n_settled, n = 0;

	if (j == 0 || j == c->n || c->spans[j].start_ns > c->spans[j - 1].end_ns) {
		c->n_settled = c->n;
		return 0;
	}
	sorted = calloc(c->n, sizeof(*sorted));
	if (sorted == NULL)
		return -ENOMEM;
	while (i < c->n_settled || j < c->n) {
		const bool is_new = i == c->n_settled ||
				    (j < c->n && c->spans[j].start_ns < c->spans[i].start_ns);

		append(sorted, &n, c->spans[is_new ? j++ : i++]);
	}
	free(c->spans);
	*c = (struct covered){sorted, n, c->n, n};
	return 0;
}
