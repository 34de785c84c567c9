/*
 * Which functions call frame information speaks of, and what of it libdw may
 * see.
 *
 * libdw reads a section's entries on, from where it stopped the last time,
 * until one covers the address that it is asked for. It stops at an entry that
 * it can't read, too, and finds none then, though one further on does; and an
 * entry that overlaps one that it has seen is as if it were not there. So what
 * it finds would hang on what it was asked for before. Here both are taken out
 * of the section, so that it finds the one function of an address, or none.
 */
#ifndef LIB_UNWIND_CFI_ENTRIES_H
#define LIB_UNWIND_CFI_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/util.h"
#include "lib/unwind/cfi_source.h"

/* A browser has about 500,000; as many CIEs are read at most. */
#define CFI_FDES_MAX (1u << 20)

enum { CFI_EH_FRAME, CFI_DEBUG_FRAME, CFI_SECTIONS };

/* A function. */
struct cfi_entry {
	uint64_t start;
	uint64_t end;
	uint32_t range_at;   /* its size stands there in the section, */
	uint16_t range_size; /* in so many bytes */
	uint16_t source;
};

struct cfi_entries {
	struct cfi_entry *v;
	size_t n;
	size_t cap;
	uint64_t work; /* of libdw, for the rows of all */
};

/*
 * Adds the functions of a section that has been loaded; what is malformed is
 * struck out there. Returns 0 or -ENOMEM.
 */
must_check int cfi_entries_add(struct cfi_entries *e, struct cfi_source *s,
			       uint16_t source);

/*
 * Sorts them by start, and cuts what overlaps, here and in the sections. As in
 * the search table that linkers make, that function counts of a section which
 * starts last, at the address or before it; of those that start together, as
 * where a linker has made one of equal ones, the first in the file. .eh_frame
 * counts before .debug_frame: a function of that ends where one of .eh_frame
 * starts, but may start in one.
 */
void cfi_entries_sort(struct cfi_entries *e,
		      struct cfi_source sources[CFI_SECTIONS]);

void cfi_entries_fini(struct cfi_entries *e);

#endif
