/*
 * An image: one ELF file (or the vDSO) as this process knows it, shared by all
 * targets that map it. Who the file is and what it looks like is read when it
 * is opened; rows and names are compiled when they are first needed, and may
 * be dropped again to save memory.
 *
 * No descriptor is kept: whoever needs the file opens it again and proves by
 * image_is that it is the same.
 */
#ifndef LIB_UNWIND_IMAGE_IMAGE_H
#define LIB_UNWIND_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/file_identity.h"
#include "lib/base/table.h"
#include "lib/base/util.h"
#include "lib/unwind/elf/build_id.h"
#include "lib/unwind/dwarf/cfi.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/dwarf/lines.h"
#include "lib/unwind/rules/rows.h"
#include "lib/unwind/elf/symbols.h"

/*
 * A copy of memory (a memfd) has no identity of its own and is known by its
 * contents: then content is not 0, and of file only the size is set.
 */
struct image_identity {
	struct file_identity file;
	uint64_t content[2];
};

/* The vDSO has 8 KiB. Larger copies of memory are not looked at. */
#define IMAGE_CONTENT_MAX (1u << 20)

struct image_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t file_size;
	bool exec;
};

/*
 * Functions of Go's runtime that change over to the scheduler's stack and call
 * there what they are given, or the vDSO. Neither Go's CFI nor its own table
 * say so.
 */
#define IMAGE_SWITCHES 7

enum image_switch_kind {
	IMAGE_SWITCH_ROOT,   /* nobody waits for its return */
	IMAGE_SWITCH_WAITED, /* a goroutine waits, on a stack not known */
	IMAGE_SWITCH_FRAMED, /* its frame pointer leads back */
};

struct image_switch {
	uint64_t start, end; /* vaddr; both 0: there is none */
	enum image_switch_kind kind;
};

struct image {
	struct image_identity identity;
	size_t refs;	    /* mappings of spaces */
	uint64_t last_use;  /* the cache's clock */
	uint64_t unread_at; /* so, when its code could not be read last */
	uint32_t number;    /* of unwind_files, when it was last opened */

	bool is_vdso; /* a copy of it */
	bool is_elf;  /* else nothing below is valid */
	struct image_segment *segments;
	size_t n_segments;
	uint64_t base; /* p_vaddr of the first PT_LOAD */
	uint64_t size; /* up to the end of the last */
	struct build_id id;
	bool has_symtab;
	bool has_debug_info;
	bool is_go;
	bool has_interpreter; /* PT_INTERP */

	bool cfi_tried;	 /* cfi is what could be had */
	struct cfi *cfi; /* may be NULL */
	struct rows go;	 /* of Go's own table, where there is no .debug_frame */
	bool symbols_tried;
	struct symbols symbols;
	struct image_switch switches[IMAGE_SWITCHES]; /* with the symbols */
	bool lines_tried;
	struct lines *lines;   /* NULL: there is no debug information */
	uint32_t lines_number; /* of the file that they are from */
	uint32_t names_number; /* and the names; 0: its own */
	/* What its code has told, as it was asked for: code_read.h. */
	struct table facts;
};

/*
 * Who the file behind fd is. Returns 0, -EINVAL if it is not a regular file,
 * -E2BIG for too large a copy of memory, -errno. seed goes into the hash.
 */
must_check int image_identify(int fd, uint64_t seed, struct image_identity *ret);
bool image_identity_equal(const struct image_identity *a, const struct image_identity *b);

/*
 * Makes an image of the file behind fd. It may turn out not to be an ELF file,
 * that is no error. seed goes into the tables. Returns 0 or -ENOMEM.
 */
must_check int image_new(int fd, const struct image_identity *identity, uint64_t seed,
			 struct image **ret);
void image_free(struct image *i);

/* Reads the CFI, and what Go has for it, once. Returns 0 or -ENOMEM. */
must_check int image_load_rows(struct image *i, int fd);

/* The rows around vaddr, if they were loaded; as cfi_rows. */
const struct rows *image_rows(struct image *i, uint64_t vaddr);

/* Reads the symbols, once. debug_fd is a separate debug file, or -1. */
must_check int image_load_symbols(struct image *i, int fd, int debug_fd);

/*
 * Reads the debug information of fd, which is the file's or its debug file's,
 * once. cpu_ns: as for lines_open.
 */
must_check int image_load_lines(struct image *i, int fd, clock_fn cpu_ns);

/* The function of these that vaddr lies in; NULL: none. */
const struct image_switch *image_switch_at(const struct image *i, uint64_t vaddr);

/* Frees rows, symbols and what else can be had again. */
void image_drop(struct image *i);

/* The bytes of memory that image_drop gives back. */
size_t image_bytes(const struct image *i);

/*
 * The load bias of a mapping of the file: what is added to an address of the
 * file to get the one in memory. False if no segment fits.
 */
bool image_bias(const struct image *i, uint64_t map_start, uint64_t map_offset, uint64_t *ret);

/* Where in the file vaddr's byte is, and how many follow in its segment. */
bool image_file_offset(const struct image *i, uint64_t vaddr, uint64_t *ret_offset,
		       uint64_t *ret_left);

#endif
