/*
 * An image: one ELF file, or the vDSO, with all that was compiled from it. All
 * targets that map the file share its image (cache.h).
 *
 * Segments and the identifier are read when the image is made. Rows, symbols and
 * lines are read when they are needed for the first time. image_drop() frees them
 * to save memory; they can be read again.
 *
 * An image keeps no descriptor. The caller opens the file again for each read and
 * checks with image_identify() that it still is the same file.
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
#include "lib/unwind/dwarf/cfi.h"
#include "lib/unwind/dwarf/lines.h"
#include "lib/unwind/elf/build_id.h"
#include "lib/unwind/elf/elf_file.h"
#include "lib/unwind/elf/symbols.h"
#include "lib/unwind/rules/rows.h"

/*
 * What tells two files apart. A copy of memory (a memfd) has no identity of its
 * own and is compared by a hash of its contents: content[0] is not 0 then, and of
 * file only the size is set.
 */
struct image_identity {
	struct file_identity file;
	uint64_t content[2];
};

/* Larger copies of memory are refused. The vDSO has 8 KiB. */
#define IMAGE_CONTENT_MAX (1u << 20)

struct image_segment {
	uint64_t offset;
	uint64_t vaddr;
	uint64_t file_size;
	bool exec;
};

/*
 * Functions of Go's runtime that switch to the scheduler's stack and call a
 * function there, or call the vDSO. Neither Go's CFI nor its own table describes
 * the switch.
 */
#define IMAGE_SWITCHES 7

enum image_switch_kind {
	IMAGE_SWITCH_ROOT,   /* the function is never returned to */
	IMAGE_SWITCH_WAITED, /* a goroutine waits on another, unknown stack */
	IMAGE_SWITCH_FRAMED, /* the frame pointer leads back to that stack */
};

struct image_switch {
	uint64_t start, end; /* vaddr; both 0: the image has no such function */
	enum image_switch_kind kind;
};

struct image {
	struct image_identity identity;
	size_t refs;	    /* mappings of spaces that use it */
	uint64_t last_use;  /* by the cache's clock */
	uint64_t unread_at; /* by the same: the last call that could not read its code */
	uint32_t number;    /* of unwind_files.number, when it was last opened */

	bool is_vdso; /* a copy of the vDSO */
	bool is_elf;  /* false: none of the members below is set */
	struct image_segment *segments;
	size_t n_segments;
	uint64_t base; /* p_vaddr of the first PT_LOAD */
	uint64_t size; /* from there to the end of the last PT_LOAD */
	struct build_id id;
	bool has_symtab;
	bool has_debug_info;
	bool is_go;
	bool has_interpreter; /* PT_INTERP */

	bool cfi_tried;	 /* the CFI was read, as far as there is some */
	struct cfi *cfi; /* may be NULL */
	struct rows go;	 /* of Go's own table, if there is no .debug_frame */
	bool symbols_tried;
	struct symbols symbols;
	struct image_switch switches[IMAGE_SWITCHES]; /* found with the symbols */
	bool lines_tried;
	struct lines *lines; /* NULL: no debug information */
	/* Numbers of the debug files that lines and symbols are from; 0: its own. */
	uint32_t lines_number;
	uint32_t names_number;
	/* What is known of its machine code; code.c has the keys. */
	struct table facts;
};

/*
 * Identifies the file behind fd. seed keys the hash of contents. Returns 0,
 * -EINVAL if it is no regular file or empty, or a negative errno.
 */
must_check int image_identify(int fd, uint64_t seed, struct image_identity *ret);
bool image_identity_equal(const struct image_identity *a, const struct image_identity *b);

/*
 * Makes an image of the file behind fd. If the file is no ELF file of this
 * processor, is_elf is false; that is no error. seed keys hash tables. Returns 0
 * or -ENOMEM.
 */
must_check int image_new(int fd, const struct image_identity *identity, uint64_t seed,
			 struct image **ret);
/* Takes NULL. */
void image_free(struct image *i);

/* Reads the CFI and Go's table, unless that was done. Returns 0 or -ENOMEM. */
must_check int image_load_rows(struct image *i, int fd);

/* The rows around vaddr, as cfi_rows(). Needs image_load_rows() before. */
const struct rows *image_rows(struct image *i, uint64_t vaddr);

/*
 * Reads the symbols, unless that was done. debug_fd is a separate debug file, or
 * -1. Returns 0 or -ENOMEM.
 */
must_check int image_load_symbols(struct image *i, int fd, int debug_fd);

/*
 * Reads the debug information from fd, which is the file itself or its debug file,
 * unless that was done. cpu_ns is passed to lines_open(). Returns 0 or -ENOMEM.
 */
must_check int image_load_lines(struct image *i, int fd, clock_fn cpu_ns);

/* The stack switch in whose function vaddr is. NULL: none. */
const struct image_switch *image_switch_at(const struct image *i, uint64_t vaddr);

/* Frees rows, symbols, lines and facts. */
void image_drop(struct image *i);

/* The bytes of memory that image_drop() frees. */
size_t image_bytes(const struct image *i);

/*
 * The load bias of a mapping: memory address minus file address. False if no
 * executable segment is mapped there.
 */
bool image_bias(const struct image *i, uint64_t map_start, uint64_t map_offset, uint64_t *ret);

/*
 * The offset of vaddr in the file, and the number of bytes from there to the end of
 * its segment. False if no segment has it.
 */
bool image_file_offset(const struct image *i, uint64_t vaddr, uint64_t *ret_offset,
		       uint64_t *ret_left);

#endif
