/*
 * Offline unwinding: from a recorded sample (lib/capture/sample.h) to the
 * addresses of its frames, their images and their names.
 *
 * This is the one header of lib/unwind that others include. It is not an
 * unwinder of live processes: nothing here touches the target. Files come by
 * descriptor through struct unwind_files, because the process that runs this
 * may not open any; they are read by pread, never mapped.
 *
 * Everything read here was written by a stranger: the maps, the ELF files, the
 * stack bytes. Wrong input gives shorter stacks and missing names, never a
 * crash, a hang, or unbounded memory.
 *
 * Single-threaded. An image (one file, by device, inode, size and change time)
 * is compiled once in a cache and shared by all spaces that map it.
 */
#ifndef LIB_UNWIND_UNWIND_H
#define LIB_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/file_identity.h"
#include "lib/base/util.h"
#include "lib/capture/sample.h"

struct unwind_cache; /* the images of all targets of this process */
struct unwind_space; /* one target's address space: its maps */

/*
 * How files get here. Each function waits for its answer, returns 0 and a
 * read-only descriptor that the caller closes, or a negative errno (the image
 * stays without CFI and names then). ctx is the last parameter of
 * unwind_space_new.
 */
struct unwind_files {
	/*
	 * The file, or for memory without a file (the vDSO, code of a file
	 * that cannot be opened) a copy of the bytes, mapped at [start, end).
	 */
	int (*image)(void *ctx, uint64_t start, uint64_t end, int *ret_fd);
	/* A separate debug file; build_id is lower-case hex. NULL: none. */
	int (*debug)(void *ctx, const char *build_id, int *ret_fd);
	/*
	 * One by the name that the file mapped at [start, end) gives it: one
	 * component of a path, printable ASCII, no dot in front. NULL: none.
	 */
	int (*debug_link)(void *ctx, uint64_t start, uint64_t end, const char *name, int *ret_fd);
	/* /tmp/perf-PID.map of the target. NULL: none. */
	int (*perf_map)(void *ctx, int *ret_fd);
	/*
	 * The number of the file that was answered last, for
	 * unwind_cache_options.reading; 0: it has none. NULL: none has one.
	 */
	uint32_t (*number)(void *ctx);
};

/* The name of a debug file, NUL included: NAME_MAX. */
#define UNWIND_DEBUG_LINK_MAX 256

/* Why a stack ends where it ends. */
enum unwind_end {
	UNWIND_END_ROOT,	     /* the CFI or the ABI says that this is the root */
	UNWIND_END_NO_MAP,	     /* the pc lies in no executable mapping */
	UNWIND_END_NO_CFI,	     /* nothing says how to go on, no frame pointer helps
				      */
	UNWIND_END_BAD_CFA,	     /* the rule's result is impossible: not on the
					stack, not above the last one, misaligned */
	UNWIND_END_UNREADABLE,	     /* it needs stack bytes that were not copied */
	UNWIND_END_UNKNOWN_REGISTER, /* it needs a register that is not known */
	UNWIND_END_CAPPED,	     /* the copy of the stack was cut: SAMPLE_CAPPED */
	UNWIND_END_MAX_FRAMES,	     /* deeper than the caller's limit */
	UNWIND_END_CYCLE,	     /* the walk does not get on */
	UNWIND_END_N
};

/* A short name for stats and tests, such as "root" or "bad_cfa". */
const char *unwind_end_name(enum unwind_end end);

/*
 * A frame. addr is what is sent: the leaf's pc, a caller's unmodified return
 * address, and for the frame that a signal interrupted and the trampoline that
 * its handler returns to, which nothing called, pc + 1 (x86) or pc + 4 (arm64),
 * so that "subtract one instruction" is right for every frame but the
 * leaf.
 */
struct unwind_frame {
	uint64_t addr;
	uint32_t is_leaf;      /* look up addr itself; else addr - 1 */
	uint32_t by_heuristic; /* found without CFI: frame pointer or search */
};

#define UNWIND_FRAMES_MAX 4096

/* Below its stack pointer a function may keep so much: x86-64's ABI. */
#define UNWIND_RED_ZONE_MAX 128

struct unwind_stack {
	struct unwind_frame frames[UNWIND_FRAMES_MAX]; /* leaf first */
	size_t n;				       /* at least 1: the leaf */
	enum unwind_end end;
	bool has_heuristic; /* some frame needed by_heuristic */
	/*
	 * The end (exclusive) of the highest bytes that the walk read of the
	 * sample's first range, 0 if it read none.
	 */
	uint64_t stack_top;
	/*
	 * Where end is UNREADABLE or CAPPED: the end of the bytes above the
	 * first range that the walk would have needed, 0 if not known.
	 */
	uint64_t missing;
	/*
	 * Not 0: the walk has come to another stack, which it would go on with
	 * if the sample had its bytes from here on as its second range.
	 */
	uint64_t second;
	/* The first frame's stack pointer in the second range; 0: there is
	 * none. */
	uint64_t second_from;
	/*
	 * What finding frame pointers took, in units of some 5 ns (search.h).
	 */
	uint32_t searched;
	/*
	 * Stacks with the same id, within a cache, have the same frames (addr
	 * and is_leaf). The shared_n frames at the root are those of the stack
	 * shared_id, which was walked before; 0: none is known to be.
	 */
	uint64_t id;
	uint64_t shared_id;
	size_t shared_n;
};

struct unwind_cache_options {
	/*
	 * Of rows, symbols, lines and perf maps: those that were used the
	 * longest ago go first.
	 */
	size_t max_bytes;
	uint64_t hash_seed;
	/*
	 * The processor time used until now: it bounds what reading a file's
	 * lines may cost. NULL: it may cost what it takes.
	 */
	clock_fn cpu_ns;
	/*
	 * Shared memory where somebody sees, if this process dies, which file
	 * it was at: the number of the one whose bytes, or what was made of
	 * them, are in use; 0: none. The caller's; NULL: nobody looks.
	 */
	uint32_t *reading;
};

must_check int unwind_cache_new(const struct unwind_cache_options *options,
				struct unwind_cache **ret);
/* All spaces must be gone. Takes NULL. */
void unwind_cache_free(struct unwind_cache *c);

/* A space without maps. files and ctx are kept and must outlive it. */
must_check int unwind_space_new(struct unwind_cache *c, const struct unwind_files *files, void *ctx,
				struct unwind_space **ret);
void unwind_space_free(struct unwind_space *s);

/*
 * Takes the text of /proc/PID/maps. Mappings that are as before keep their
 * images; files that could not be had are asked for again. Returns 0, -EINVAL
 * if the text is no maps file (the old maps stay), -E2BIG above UNWIND_MAPS_MAX
 * lines, -ENOMEM.
 */
#define UNWIND_MAPS_MAX 65536
must_check int unwind_space_set_maps(struct unwind_space *s, const char *text, size_t size);

/*
 * Takes one file in place of maps: the one that files->image hands out, whole
 * and from start on, which is where its first segment lies then. For names and
 * lines of addresses that were recorded elsewhere. The file may be a separate
 * debug file. start is a multiple of UNWIND_FILE_ALIGN, with UNWIND_FILE_MAX
 * bytes above it. Returns 0; -ENOEXEC if it is no ELF file of this processor
 * with segments of at most UNWIND_FILE_MAX together; -EINVAL if it is no
 * regular file; the error of files->image; -ENOMEM.
 */
#define UNWIND_FILE_ALIGN 4096u
#define UNWIND_FILE_MAX	  (UINT64_C(1) << 46)
must_check int unwind_space_set_file(struct unwind_space *s, const char *path, uint64_t start);

/*
 * Who the files of the mappings are, as far as somebody has looked: of the last
 * maps, and of mappings whose file was not asked for yet. The file of a mapping
 * is not asked for if it is in the cache.
 */
void unwind_space_set_identities(struct unwind_space *s, const struct mapped_file *files, size_t n);

/*
 * Whether that text, taken by unwind_space_set_maps, would change or take away
 * an executable range that is known now: addresses recorded until now must be
 * looked up before, and not be mixed with later ones. New ranges do not count.
 * Errors as unwind_space_set_maps; nothing is changed.
 */
must_check int unwind_space_would_remap(const struct unwind_space *s, const char *text, size_t size,
					bool *ret_remapped);

/* True if addr lies in an executable mapping of the last maps. */
bool unwind_space_covers(const struct unwind_space *s, uint64_t addr);

/* Bytes of a stack in a sample: of the addresses from addr on. */
struct unwind_bytes {
	const uint8_t *bytes;
	uint64_t addr;
	size_t size;
};

/*
 * A sample that has been read. The record lies in memory that its writer can
 * change at any time (the ring). So every field is a copy; only the stack bytes
 * are still the writer's, and nothing bounds a read but the sizes here.
 */
struct unwind_sample {
	uint32_t tid;
	uint32_t flags; /* enum sample_flags */
	uint64_t time_ns;
	uint64_t regs_known;
	uint64_t regs[SAMPLE_REGS_MAX];
	struct unwind_bytes stack;
	struct unwind_bytes second; /* size 0: none */
	struct sample_known known;
};

/*
 * Reads and checks a record of size bytes, as the ring gave it. Reads each of
 * its fields once. The stack bytes have to stay as long as *ret is in use.
 * Returns 0, or -EINVAL if the record is malformed.
 */
must_check int unwind_sample_read(const struct record_sample *record, size_t size,
				  struct unwind_sample *ret);

/*
 * The frames of a sample. max_frames (1 to UNWIND_FRAMES_MAX) bounds the walk.
 * Always gives at least the leaf, and a reason.
 */
void unwind_walk_sample(struct unwind_space *s, const struct unwind_sample *sample,
			size_t max_frames, struct unwind_stack *ret);

/* Both of them. Returns 0, or -EINVAL if the record is malformed. */
must_check int unwind_walk(struct unwind_space *s, const struct record_sample *record, size_t size,
			   size_t max_frames, struct unwind_stack *ret);

/* An image as debug_meta needs it. Valid as long as its space's maps. */
struct unwind_image {
	const char *path;  /* as in maps, " (deleted)" taken off; "[vdso]" */
	const uint8_t *id; /* build-id, or 16 bytes made from .text; may be NULL */
	size_t id_size;
	bool has_build_id;	/* id is a real build-id */
	uint64_t addr;		/* bias + p_vaddr of the first PT_LOAD */
	uint64_t vmaddr;	/* that p_vaddr */
	uint64_t size;		/* up to the end of the last PT_LOAD */
	uint64_t device, inode; /* of the file; 0, 0 for the vDSO */
	bool is_go;		/* made by Go's compiler */
	bool has_interpreter;	/* it names a dynamic linker */
};

/*
 * The image that addr lies in. Returns 0, or -ENOENT if addr lies in none or
 * the file is no ELF file that can be read.
 */
must_check int unwind_image_at(struct unwind_space *s, uint64_t addr, struct unwind_image *ret);

/*
 * The image of the first executable mapping whose path is this. As
 * unwind_image_at.
 */
must_check int unwind_image_of_path(struct unwind_space *s, const char *path,
				    struct unwind_image *ret);

/*
 * What is asked of files beside call frame information. A new space wants
 * names.
 */
enum unwind_symbols {
	UNWIND_SYMBOLS_NONE, /* unwind_symbol_at finds nothing */
	UNWIND_SYMBOLS_NAMES,
	UNWIND_SYMBOLS_LINES, /* and where they stand in the source */
};
void unwind_space_set_symbols(struct unwind_space *s, enum unwind_symbols symbols);

/*
 * The symbol that covers addr (already lowered by one where it is a return
 * address): of its file or, where it lies in no ELF file, of the target's perf
 * map. *ret_name is raw (mangled), valid until the next call of this module;
 * *ret_offset is addr's distance from its start. Returns 0 or -ENOENT. With 0
 * the file is in use still (unwind_cache_options.reading): to demangle a name
 * is to read what it says.
 */
must_check int unwind_symbol_at(struct unwind_space *s, uint64_t addr, const char **ret_name,
				uint64_t *ret_offset);

/*
 * Where the function that addr lies in starts, by call frame information: the
 * start of its FDE. It needs no symbol. Returns 0, or -ENOENT if no FDE covers
 * addr, or its file can not be read any more.
 */
must_check int unwind_function_at(struct unwind_space *s, uint64_t addr, uint64_t *ret_start);

/*
 * The return address of a call at addr: addr + 1 (x86-64) or + 4 (arm64). "One
 * instruction before" it is addr.
 */
uint64_t unwind_after_call(uint64_t addr);

/* A place in the source. Texts are a stranger's and may be any bytes. */
struct unwind_line {
	const char *function; /* raw, or NULL */
	const char *file;     /* its path where it was compiled, or NULL */
	uint32_t line;	      /* 0: not known */
};

/* Functions inlined into each other at one address, and the one around. */
#define UNWIND_LINES_MAX 32

/*
 * Where addr (lowered as for unwind_symbol_at) stands in the source, if the
 * space wants lines: the innermost function first, each with the place in it;
 * the last is the one that the symbol names. Valid until the next call of this
 * module. Returns 0 or -ENOENT; with 0 the file is in use still, as above.
 */
must_check int unwind_lines_at(struct unwind_space *s, uint64_t addr,
			       struct unwind_line ret[UNWIND_LINES_MAX], size_t *ret_n);

/* No file is in use any more: what was found above has been gone through. */
void unwind_names_done(struct unwind_space *s);

/*
 * How many addresses had no lines because their file's debug information is
 * too large, or cost too much, to be read whole; since the last call of this.
 */
uint64_t unwind_space_take_lines_skipped(struct unwind_space *s);

/*
 * A C++ or Rust symbol (legacy and v0) as people write it; with_parameters: of
 * a C++ function, those too. False if it is none, or one that is too large;
 * then there is nothing in out, whose size is at least 1.
 */
#define UNWIND_DEMANGLE_MAX 1024
bool unwind_demangle(const char *raw, bool with_parameters, char *out, size_t size);

#endif
