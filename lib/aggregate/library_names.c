#include "lib/aggregate/library_names.h"

#include <string.h>

/* As library_names.sh computes it. */
static uint64_t library_names_hash(const char *name, size_t size)
{
	uint32_t a = 5381, b = 2166136261u;

	for (size_t i = 0; i < size; i++) {
		a = a * 65599 + (uint8_t)name[i];
		b = b * 1000003 + (uint8_t)name[i];
	}
	return (uint64_t)a << 32 | b;
}

bool library_names_has(const char *symbol)
{
	const size_t size = strcspn(symbol, ".");
	const uint64_t hash = library_names_hash(symbol, size);
	size_t low = 0, high = library_names_n;

	if (size == 0)
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (library_names[middle] < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low < library_names_n && library_names[low] == hash;
}
