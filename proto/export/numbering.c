#include "proto/export/numbering.h"

#include <stdlib.h>

#include "lib/base/array.h"

void export_strings_init(struct export_strings *s, uint64_t hash_seed)
{
	*s = (struct export_strings){0};
	table_init(&s->numbers, hash_seed);
}

void export_strings_fini(struct export_strings *s)
{
	table_fini(&s->numbers);
	free(s->strings);
	*s = (struct export_strings){0};
}

uint32_t export_strings_number(struct export_strings *s, const char *text)
{
	uint32_t number = 0;

	if (s->error < 0 || table_get(&s->numbers, (uintptr_t)text, &number))
		return number;
	number = (uint32_t)s->n;
	if (array_grow(s->strings, s->n, s->cap) < 0 ||
	    table_put(&s->numbers, (uintptr_t)text, number) < 0)
		s->error = -ENOMEM;
	else
		s->strings[s->n++] = text;
	return number;
}

static bool same_function(const struct merge_frame *a, const struct merge_frame *b)
{
	return a->name == b->name && a->package == b->package && a->file == b->file;
}

static int number_frame(struct export_functions *f, const struct merge *m, uint32_t frame,
			struct table *by_key)
{
	const struct merge_frame *wanted = &m->frames[frame];
	uint64_t key = (uint64_t)(uintptr_t)wanted->name * 31 + (uintptr_t)wanted->package;
	uint32_t *number = &f->of_frame[frame];

	for (; table_get(by_key, key, number); key++)
		if (same_function(&m->frames[f->first_frame[*number]], wanted))
			return 0;
	*number = (uint32_t)f->n;
	f->first_frame[f->n++] = frame;
	return table_put(by_key, key, *number);
}

int export_functions_init(struct export_functions *f, const struct merge *m)
{
	struct table by_key;
	int r = 0;

	*f = (struct export_functions){
		.of_frame = calloc(m->n_frames + 1, sizeof(uint32_t)),
		.first_frame = calloc(m->n_frames + 1, sizeof(uint32_t)),
	};
	if (f->of_frame == NULL || f->first_frame == NULL)
		return -ENOMEM;
	table_init(&by_key, m->options.hash_seed);
	for (uint32_t i = 0; i < m->n_frames && r == 0; i++)
		r = number_frame(f, m, i, &by_key);
	table_fini(&by_key);
	return r;
}

void export_functions_fini(struct export_functions *f)
{
	free(f->of_frame);
	free(f->first_frame);
	*f = (struct export_functions){0};
}
