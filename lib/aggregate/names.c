#include "lib/aggregate/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* Size of a 64-bit decimal number with a blank, brackets and the NUL. */
#define NUMBER_SIZE sizeof(" (18446744073709551615)")

const char *names_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/*
 * Returns true if comm is the one that the kernel makes of a file name of size bytes: its
 * first COMM_SIZE - 1 bytes.
 */
static bool is_comm_of(const char *comm, const char *name, size_t size)
{
	size = min_size(size, COMM_SIZE - 1);
	return size > 0 && strlen(comm) == size && strncmp(comm, name, size) == 0;
}

/* As is_comm_of(), for the file name in the first word of argv0. */
static bool is_comm_of_argv0(const char *comm, const char *argv0)
{
	size_t size = strcspn(argv0, " "), base = size;

	while (base > 0 && argv0[base - 1] != '/')
		base--;
	return is_comm_of(comm, argv0 + base, size - base);
}

void names_thread(const char *comm, size_t comm_size, bool is_main, const char *main_path,
		  const char *main_argv0, char out[THREAD_NAME_SIZE])
{
	const char *file = names_base(main_path);
	char text[COMM_SIZE + 1] = "";

	memcpy(text, comm, min_size(comm_size, COMM_SIZE));
	if (is_main && (is_comm_of(text, file, strlen(file)) || is_comm_of_argv0(text, main_argv0)))
		memcpy(text, "main", sizeof("main"));
	utf8_clean(text, false, out, THREAD_NAME_SIZE);
}

static int compare_names(const void *a, const void *b)
{
	struct profile_thread *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int add_number(struct profile_thread *t, struct string_pool *text)
{
	char name[THREAD_NAME_SIZE + NUMBER_SIZE];

	(void)snprintf(name, sizeof(name), "%s (%" PRIu64 ")", t->name,
		       t->id != 0 ? t->id : t->tid);
	return string_pool_intern(text, name, &t->name);
}

int names_tell_apart(struct profile_thread *threads, size_t n, struct string_pool *text)
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
