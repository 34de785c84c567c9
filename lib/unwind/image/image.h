/*
 * An image: one ELF file, or the vDSO, with all that was compiled from it. All
 * targets that map the file share its image (cache.h).
 *
 * image_new() reads the segments and the build-id. The functions image_load_*() read the rest when
 * it is needed: call frame information (CFI), symbols, names of PLT stubs, source lines. To save
 * memory, image_drop() frees what they have read; they can read it again.
 *
 * The caller of these functions, the cache (cache.h), opens the file for each read. Before the read
 * the cache checks by image_identify() that the file has not changed or, if only the change time
 * differs or it is a new copy in memory, by image_matches(). An image keeps one descriptor only:
 * lines_file.fd.
 *
 * "The cache's clock" is unwind_cache.clock: the number of calls of cache_begin() so far.
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
 * The identity of a file: two files with equal identities have one image.
 *   a file on disk      file; content[] is 0
 *   a memfd, or a       content[], a hash of its contents, and file.size; the rest of file is 0.
 *   file on a tmpfs     content[0] is never 0
 * A memfd has a copy of a target's memory. Each copy is a new file, so only the contents show that
 * two copies are equal.
 */
struct image_identity {
	struct file_identity file;
	uint64_t content[2];
};

/*
 * Bytes. A larger memfd or file on a tmpfs is not hashed, but identified like a file on disk: each
 * target that has the same memory then has an image of its own. The vDSO has 8 KiB.
 */
#define IMAGE_CONTENT_MAX (1u << 20)

struct image_segment {
	uint64_t offset;    /* p_offset */
	uint64_t vaddr;	    /* p_vaddr */
	uint64_t file_size; /* p_filesz */
	bool exec;
};

/*
 * Stack switches: functions of Go's runtime that switch from a goroutine's stack to the scheduler's
 * and call another function there. Neither Go's CFI nor its own table describes the switch.
 * IMAGE_SWITCHES is the number of these functions.
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
 * The file from which the lines of an image are to be read: the image's own or its separate debug
 * file. The cache opens the file at the first sample in the image, and keeps it open until the
 * lines are read: by then the target may have ended, and its files could not be opened. The cache
 * limits how many such files are open.
 */
struct image_lines_file {
	int fd;			   /* -1: not open */
	bool sought;		   /* opened or tried: cache_open_lines_file() does nothing */
	uint32_t number;	   /* unwind_files.number() of the file */
	struct file_identity file; /* when it was opened */
	uint64_t since;		   /* the cache's clock when it was opened */
	/* Bytes of memory that closing fd frees: the size of a memfd; 0 for other files. */
	uint64_t memory_bytes;
};

struct image {
	struct image_identity identity;
	size_t refs;	    /* number of struct space_mapping that refer to the image */
	uint64_t last_use;  /* the cache's clock at the last use */
	uint64_t unread_at; /* the cache's clock when code of the image last could not be read */
	uint64_t read_ns;   /* processor time of all reads since image_drop() */
	uint64_t again_at;  /* the cache's clock before which the cache does not read the file */
	uint32_t number;    /* unwind_files.number() when the file was last opened */

	uint64_t page_size; /* of the kernel, bytes: the unit in which files are mapped */
	bool is_vdso;	    /* a copy of the vDSO */
	bool is_elf;	    /* an ELF file of this processor; else it has no rows and no names */
	struct image_segment *segments;
	size_t n_segments;
	uint64_t base; /* p_vaddr of the first PT_LOAD */
	uint64_t size; /* bytes from base to the end of the last PT_LOAD */
	struct build_id id;
	struct fingerprint fingerprint; /* not used for the vDSO */
	/* A hash of ELF header, section headers and modification time; 0 with a build-id. */
	uint64_t headers;
	bool has_symtab;
	bool has_debug_info;
	bool is_go;
	bool has_interpreter; /* PT_INTERP */

	bool cfi_tried;	 /* image_load_rows() has run */
	struct cfi *cfi; /* NULL: not loaded, or the file cannot be read as ELF */
	struct rows go;	 /* from Go's own table, if the file has no .debug_frame */
	bool symbols_tried;
	struct symbols symbols;
	struct image_switch switches[IMAGE_SWITCHES]; /* found with the symbols */
	struct plt plt;
	bool lines_tried;
	struct lines *lines; /* NULL: no debug information */
	struct image_lines_file lines_file;
	uint32_t names_number; /* of the debug file with the symbols; 0: the image's own file */
	/*
	 * The search for a debug file could not be completed (unwind_files.debug): the cache
	 * searches again when one more target maps the image.
	 */
	bool debug_file_due;
	/* Results of analysing the machine code; code.c has the keys. */
	struct table answers;
};

/*
 * Identifies the file behind fd. seed is the key of the hash of contents. Returns 0; -EINVAL if the
 * file is not regular or is empty; -ENODATA if it was truncated meanwhile; or the negative errno of
 * fstat(2) or pread(2).
 */
must_check int image_identify(int fd, uint64_t seed, struct image_identity *ret);
bool image_identity_equal(const struct image_identity *a, const struct image_identity *b);

/*
 * Returns true if the file behind fd has the image's build-id or, if neither has one, the same ELF
 * header, section headers and modification time: probably it is the same build. Also returns false
 * if i->is_elf is false or the file is no ELF file. Call it
 * - if the file differs from the image's only in its change time, which chmod(2) and link(2) set,
 *   or if both are copies in memory (a memfd) of the same size; or
 * - if the file of lines_file has changed since it was opened, but not in size. It may be the debug
 *   file, which has the image's build-id.
 */
bool image_matches(const struct image *i, int fd);

/*
 * Makes an image of the file behind fd, which stays the caller's; identity is copied.
 * Free the image with image_free(). If the file is no ELF file of this processor,
 * is_elf is false; that is no error. seed is the key of hashes and hash tables. Returns 0 or
 * -ENOMEM.
 */
must_check int image_new(int fd, const struct image_identity *identity, uint64_t seed,
			 struct image **ret);
/* i may be NULL. */
void image_free(struct image *i);

/*
 * The functions image_load_*() read a part of the file behind fd, unless it has been read since
 * image_drop(). A damaged or unreadable file is no error: the part is then empty. They return 0 or
 * -ENOMEM.
 */

/* Reads the CFI and the table of Go's runtime, and makes unwind rows of them (rules/rows.h). */
must_check int image_load_rows(struct image *i, int fd);

/*
 * Returns the rows around vaddr: those of the CFI, or of Go's table if the CFI has no
 * rule there. Never NULL; valid until image_drop(). Call image_load_rows() first.
 */
const struct rows *image_rows(struct image *i, uint64_t vaddr);

/*
 * Reads the symbols, from the file and from a separate debug file behind debug_fd (-1: none). Also
 * calls image_load_rows(), because the CFI shows where a symbol without a size ends.
 */
must_check int image_load_symbols(struct image *i, int fd, int debug_fd);

/* Reads the names of PLT stubs. Call image_load_symbols() first. */
must_check int image_load_plt(struct image *i, int fd);

/*
 * Reads the debug information. fd is the file itself or its separate debug file; -1: there is no
 * debug information, and the image has no lines. cpu_ns is passed to lines_open().
 */
must_check int image_load_lines(struct image *i, int fd, clock_fn cpu_ns);

/* Returns the stack switch whose function contains vaddr, or NULL. */
const struct image_switch *image_switch_at(const struct image *i, uint64_t vaddr);

/* Frees rows, symbols, names of PLT stubs, lines and answers. lines_file stays open. */
void image_drop(struct image *i);

/*
 * Frees the symbols. The next load reads them again, and the lines, too, if none were found. Call
 * this if debug_file_due is set and one more target maps the image's file: that target may have a
 * debug file for it. Clears debug_file_due.
 */
void image_search_debug_file_again(struct image *i);

/* Closes lines_file, if it is open. */
void image_close_lines_file(struct image *i);

/* Returns how many bytes of memory image_drop() would free. */
size_t image_bytes(const struct image *i);

/*
 * Sets *ret to the load bias of a mapping of the image's file: address in memory minus address in
 * the file (vaddr). The mapping begins at map_start in memory and at offset map_offset in the file.
 * exec: the mapping is executable. Returns false if the file has no segment at map_offset that is
 * executable (with exec) or not executable (without exec).
 */
bool image_bias(const struct image *i, uint64_t map_start, uint64_t map_offset, bool exec,
		uint64_t *ret);

/*
 * Returns true if all of [start, end), addresses in memory, is within the pages of one executable
 * segment. bias is the load bias of the image there.
 */
bool image_has_code(const struct image *i, uint64_t bias, uint64_t start, uint64_t end);

/*
 * Sets *ret_offset to the offset of vaddr in the file, and *ret_left to the number of
 * bytes from there to the end of its segment. Returns false if no segment has vaddr.
 */
bool image_file_offset(const struct image *i, uint64_t vaddr, uint64_t *ret_offset,
		       uint64_t *ret_left);

#endif
