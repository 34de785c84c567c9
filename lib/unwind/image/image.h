/*
 * An image: one ELF file, or the vDSO, with all that was compiled from it. All
 * targets that map the file share its image (cache.h).
 *
 * Segments and the build-id are read when the image is made. The caller has CFI,
 * symbols, names of PLT stubs and lines read by image_load_rows(), image_load_symbols(),
 * image_load_plt() and image_load_lines(). image_drop() frees them to save memory; they
 * can be read again.
 *
 * The caller opens the file for each read, and checks that it still is the image's:
 * image_identify() or, if the change time differs, image_matches(). The one descriptor that an
 * image keeps is that of its lines (struct image_lines_file).
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
#include "lib/unwind/elf/fingerprint.h"
#include "lib/unwind/elf/plt.h"
#include "lib/unwind/elf/symbols.h"
#include "lib/unwind/rules/rows.h"

/*
 * What tells two files apart. A memfd with a copy of a target's memory is identified
 * by a hash of its contents: content[] is the hash, content[0] is never 0, and only
 * the size is set in file. For other files content[] is 0.
 */
struct image_identity {
	struct file_identity file;
	uint64_t content[2];
};

/*
 * In bytes. A larger memfd is identified as a file is, so that a second copy of the
 * same memory gets an image of its own. The vDSO has 8 KiB.
 */
#define IMAGE_CONTENT_MAX (1u << 20)

struct image_segment {
	uint64_t offset; /* p_offset */
	uint64_t vaddr;
	uint64_t file_size; /* p_filesz */
	bool exec;
};

/*
 * Functions of Go's runtime that switch to the scheduler's stack and call a
 * function there, or call the vDSO. Neither Go's CFI nor its own table describes
 * the switch.
 */
#define IMAGE_SWITCHES 7

enum image_switch_kind {
	IMAGE_SWITCH_ROOT, /* the function does not return: its frame is the root */
	/* The caller is on a goroutine's stack, whose address is unknown: the walk ends. */
	IMAGE_SWITCH_UNKNOWN,
	/* The frame pointer points to the caller's stack: the walk continues there. */
	IMAGE_SWITCH_FRAMED,
};

struct image_switch {
	uint64_t start, end; /* vaddr; both 0: the image has no such function */
	enum image_switch_kind kind;
};

/*
 * The file from which the lines of an image are to be read: the image's own or its debug file. It
 * is open from the first sample in the image until the lines are read, because the target may have
 * ended by then. The cache (cache.h) opens it and limits how many are open.
 */
struct image_lines_file {
	int fd;			   /* -1: not open */
	bool sought;		   /* the cache has tried to open it since image_drop() */
	uint32_t number;	   /* unwind_files.number() of the file */
	struct file_identity file; /* when it was opened */
	uint64_t since;		   /* the cache's clock then */
	/* Bytes of memory that only the descriptor holds: those of a copy of a file. */
	uint64_t memory_bytes;
};

struct image {
	struct image_identity identity;
	size_t refs;	    /* number of struct space_mapping that refer to the image */
	uint64_t last_use;  /* the cache's clock at the last use */
	uint64_t unread_at; /* the cache's clock when its code last could not be read */
	uint64_t read_ns;   /* processor time of the cache's readings since image_drop() */
	uint64_t again_at;  /* the cache's clock at which the file may be read again */
	uint32_t number;    /* unwind_files.number() when the file was last opened */

	uint64_t page_size; /* of the kernel, bytes: the unit in which files are mapped */
	bool is_vdso;	    /* a copy of the vDSO */
	bool is_elf;	    /* false: none of the members below is set */
	struct image_segment *segments;
	size_t n_segments;
	uint64_t base; /* p_vaddr of the first PT_LOAD */
	uint64_t size; /* from there to the end of the last PT_LOAD */
	struct build_id id;
	struct fingerprint fingerprint; /* not of the vDSO */
	/* Without a build-id: a hash of the section headers and the modification time. */
	uint64_t headers;
	bool has_symtab;
	bool has_debug_info;
	bool is_go;
	bool has_interpreter; /* PT_INTERP */

	bool cfi_tried;	 /* image_load_rows() has run */
	struct cfi *cfi; /* NULL: not loaded, or the file cannot be read as ELF */
	struct rows go;	 /* of Go's own table, if there is no .debug_frame */
	bool symbols_tried;
	struct symbols symbols;
	struct image_switch switches[IMAGE_SWITCHES]; /* found with the symbols */
	struct plt plt;
	bool lines_tried;
	struct lines *lines; /* NULL: no debug information */
	struct image_lines_file lines_file;
	uint32_t names_number; /* of the debug file with the symbols; 0: image's own */
	/* The debug file could not be opened: for the next target it is searched for again. */
	bool debug_file_due;
	/* Results of analysing the machine code; code.c has the keys. */
	struct table answers;
};

/*
 * Identifies the file behind fd. seed keys the hash of contents. Returns 0; -EINVAL
 * if fd is not a regular file or is empty; or the negative errno of fstat(2) or
 * pread(2).
 */
must_check int image_identify(int fd, uint64_t seed, struct image_identity *ret);
bool image_identity_equal(const struct image_identity *a, const struct image_identity *b);

/*
 * Returns true if the file behind fd has the contents of the image as far as is known: the same
 * build-id or, if the image has none, the same section headers and modification time. chmod(2),
 * link(2) and utimensat(2) change the change time, and not the contents. For a file whose device,
 * inode and size are the image's, or for its debug file.
 */
bool image_matches(const struct image *i, int fd);

/*
 * Makes an image of the file behind fd, which stays the caller's; identity is copied.
 * Free the image with image_free(). If the file is no ELF file of this processor,
 * is_elf is false; that is no error. seed keys hash tables. Returns 0 or -ENOMEM.
 */
must_check int image_new(int fd, const struct image_identity *identity, uint64_t seed,
			 struct image **ret);
/* i may be NULL. */
void image_free(struct image *i);

/*
 * Reads the CFI and Go's table, unless that was done. A damaged or unreadable file has
 * no rows; that is no error, and it is not read again until image_drop(). Returns 0 or
 * -ENOMEM.
 */
must_check int image_load_rows(struct image *i, int fd);

/*
 * Returns the rows around vaddr: those of the CFI, or of Go's table if the CFI has no
 * rule there. Never NULL; valid until image_drop(). Call image_load_rows() first.
 */
const struct rows *image_rows(struct image *i, uint64_t vaddr);

/*
 * Reads the symbols, unless that was done, and the CFI as image_load_rows(): a symbol without a
 * size ends where another function begins. debug_fd is a separate debug file, or -1.
 * A damaged or unreadable file has no symbols; that is no error, and it is not read
 * again until image_drop(). Returns 0 or -ENOMEM.
 */
must_check int image_load_symbols(struct image *i, int fd, int debug_fd);

/*
 * Reads the names of PLT stubs, unless that was done. Call image_load_symbols() first. A damaged
 * or unreadable file has none; that is no error. Returns 0 or -ENOMEM.
 */
must_check int image_load_plt(struct image *i, int fd);

/*
 * Reads the debug information from fd, which is the file itself or its debug file,
 * unless that was done; -1: there is none. cpu_ns is passed to lines_open(). A file without debug
 * information has no lines; that is no error. Returns 0 or -ENOMEM.
 */
must_check int image_load_lines(struct image *i, int fd, clock_fn cpu_ns);

/* Returns the stack switch whose function contains vaddr, or NULL. */
const struct image_switch *image_switch_at(const struct image *i, uint64_t vaddr);

/* Frees rows, symbols, names of PLT stubs, lines and answers. lines_file stays open. */
void image_drop(struct image *i);

/*
 * Frees the symbols, and has them and the lines read again: from a debug file that another target
 * may have.
 */
void image_search_debug_file_again(struct image *i);

/* Closes lines_file, if it is open. */
void image_close_lines_file(struct image *i);

/* Returns how many bytes of memory image_drop() would free. */
size_t image_bytes(const struct image *i);

/*
 * Sets *ret to the load bias of a mapping of the image's file: address in memory minus address in
 * the file. exec: the mapping is executable, and so is its segment. Returns false if no such
 * segment is mapped there.
 */
bool image_bias(const struct image *i, uint64_t map_start, uint64_t map_offset, bool exec,
		uint64_t *ret);

/*
 * Returns true if all of [start, end) is within the pages of one executable segment, where it
 * belongs with this bias.
 */
bool image_has_code(const struct image *i, uint64_t bias, uint64_t start, uint64_t end);

/*
 * Sets *ret_offset to the offset of vaddr in the file, and *ret_left to the number of
 * bytes from there to the end of its segment. Returns false if no segment has vaddr.
 */
bool image_file_offset(const struct image *i, uint64_t vaddr, uint64_t *ret_offset,
		       uint64_t *ret_left);

#endif
