#include "lib/aggregate/library_names.h"

#include <stdlib.h>
#include <string.h>

/* The same function as in library_names.sh. */
static uint64_t library_names_hash(const char *name, size_t size)
{
	uint32_t a = 5381, b = 2166136261u;

	for (size_t i = 0; i < size; i++) {
		a = a * 65599 + (uint8_t)name[i];
		b = b * 1000003 + (uint8_t)name[i];
	}
	return (uint64_t)a << 32 | b;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool library_names_has(const char *symbol)
{
	const size_t size = strcspn(symbol, ".");
	const uint64_t hash = library_names_hash(symbol, size);

	return size > 0 &&
	       bsearch(&hash, library_names, library_names_n, sizeof(hash), compare) != NULL;
}
