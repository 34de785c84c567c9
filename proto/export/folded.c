#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "proto/export/export.h"

/* Control characters are C0, DEL, and C1, which is two bytes in UTF-8: 0xc2 and 0x80-0x9f. */
void export_folded_name(const char *s, FILE *out)
{
	for (; *s != '\0'; s++) {
		const unsigned char c = (unsigned char)*s;
		const unsigned char next = (unsigned char)s[1];

		if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
			(void)putc('_', out);
			s++;
			continue;
		}
		(void)putc(c < 0x20 || c == 0x7f || c == ';' ? '_' : c, out);
	}
}

static void write_stack(const struct merge *m, const struct export_options *o, uint32_t thread,
			uint32_t node, uint32_t *path, FILE *out)
{
	const size_t n = merge_path(m, node, path);

	if (o->with_threads) {
		export_folded_name(m->threads[thread].label, out);
		(void)putc(';', out);
	}
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			(void)putc(';', out);
		export_folded_name(m->frames[m->nodes[path[i]].frame].name, out);
	}
}

/* The order with threads: by thread, then by stack. */
static int compare_threads(const void *a, const void *b)
{
	const struct merge_bar *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static int compare_nodes(const void *a, const void *b)
{
	const struct merge_bar *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

static int write_lines(const struct merge *m, const struct export_options *o,
		       struct merge_bar *bars, uint32_t *path, FILE *out)
{
	int (*const compare)(const void *, const void *) =
		o->with_threads ? compare_threads : compare_nodes;
	size_t i = 0;

	if (m->n_bars > 1)
		qsort(bars, m->n_bars, sizeof(*bars), compare);
	while (i < m->n_bars) {
		const struct merge_bar *first = &bars[i];
		uint64_t value = 0;

		for (; i < m->n_bars && compare(first, &bars[i]) == 0; i++)
			value += o->by_samples ? bars[i].samples : bars[i].duration_ns / NS_PER_US;
		if (value == 0)
			continue;
		write_stack(m, o, first->thread, first->node, path, out);
		(void)fprintf(out, " %" PRIu64 "\n", value);
	}
	return flush_stream(out);
}

int export_folded(const struct merge *m, const struct export_options *o, FILE *out)
{
	struct merge_bar *bars = calloc(m->n_bars + 1, sizeof(*bars));
	uint32_t *path = calloc(IMPORT_STACK_FRAMES_MAX, sizeof(*path));
	int r = -ENOMEM;

	if (bars != NULL && path != NULL) {
		if (m->n_bars > 0)
			memcpy(bars, m->bars, m->n_bars * sizeof(*bars));
		r = write_lines(m, o, bars, path, out);
	}
	free(bars);
	free(path);
	return r;
}
