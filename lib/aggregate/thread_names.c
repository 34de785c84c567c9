#include "lib/aggregate/thread_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/aggregate/names.h"

/* Of 64 bits in decimal, with a blank, brackets and NUL. */
#define NUMBER_SIZE sizeof(" (18446744073709551615)")

static int compare_names(const void *a, const void *b)
{
	struct profile_thread *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int add_number(struct profile_thread *t, struct text *text)
{
	char name[THREAD_NAME_SIZE + NUMBER_SIZE];

	(void)snprintf(name, sizeof(name), "%s (%" PRIu64 ")", t->name,
		       t->id != 0 ? t->id : t->tid);
	return text_intern(text, name, &t->name);
}

int thread_names_tell_apart(struct profile_thread *threads, size_t n, struct text *text)
{
	struct profile_thread **sorted;
	int r = 0;

	if (n < 2)
		return 0;
	sorted = calloc(n, sizeof(sorted[0]));
	if (sorted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &threads[i];
	qsort(sorted, n, sizeof(sorted[0]), compare_names);
	for (size_t i = 0, end; i < n && r == 0; i = end) {
		const char *name = sorted[i]->name;

		for (end = i + 1; end < n; end++)
			if (strcmp(sorted[end]->name, name) != 0)
				break;
		if (end == i + 1 || name[0] == '\0')
			continue;
		for (size_t k = i; k < end && r == 0; k++)
			r = add_number(sorted[k], text);
	}
	free(sorted);
	return r;
}
