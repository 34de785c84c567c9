/*
 * Offline unwinding: turns a recorded sample (lib/capture/sample.h) into the
 * addresses of its frames, and an address into its image, symbol and source
 * line. This is the interface of lib/unwind.
 *
 * The library never touches the target. It gets files as descriptors through
 * struct unwind_files, because the process that runs it may not open any, and
 * reads them with pread(2). It maps no file: a file that is truncated while it
 * is mapped raises SIGBUS.
 *
 * A cache (struct unwind_cache) holds what was compiled from files. Each file
 * is one image, shared by all targets that map it, and identified by device, inode,
 * size and change time. If only the change time differs when a file is opened again
 * (chmod(2), link(2), utimensat(2)), it is the same file if its build-id is the same or,
 * without one, its section headers and modification time. A space (struct unwind_space) is the
 * address space of one target.
 *
 * Ownership: texts and pointers in results belong to the library. Each function
 * says how long they are valid. Not thread-safe.
 *
 * Errors: 0 or a negative errno. A stack that cannot be walked to its root is
 * no error: enum unwind_end gives the reason.
 *
 * Beware: maps, ELF files, perf maps and stack bytes come from the target and
 * may be malicious. Wrong input shortens stacks and loses names. It must never
 * cause a crash, a hang or unbounded memory.
 *
 * Example, on x86_64: walks the stack of its own process, and prints the names of the functions.
 *
 *	#include <fcntl.h>
 *	#include <stdio.h>
 *	#include <ucontext.h>
 *	#include "lib/unwind/unwind.h"
 *
 *	static int open_image(void *pid, uint64_t start, uint64_t end, int *ret_fd)
 *	{
 *		char path[64];
 *
 *		(void)snprintf(path, sizeof(path), "/proc/%s/map_files/%lx-%lx",
 *			       (const char *)pid, start, end);
 *		*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
 *		return *ret_fd < 0 ? -errno : 0;
 *	}
 *
 *	int main(int argc, char **argv)
 *	{
 *		static struct unwind_sample sample;
 *		static struct unwind_stack stack;
 *		static char self[] = "self", maps[1 << 16];
 *		const ssize_t n = read(open("/proc/self/maps", O_RDONLY), maps, sizeof(maps));
 *		const struct unwind_cache_options options = {.max_bytes = 64 << 20, .max_files = 8};
 *		const struct unwind_files files = {.image = open_image};
 *		struct unwind_cache *cache;
 *		struct unwind_space *space;
 *		ucontext_t here;
 *		const char *name;
 *		uint64_t offset;
 *
 *		(void)getcontext(&here);
 *		sample.regs[SAMPLE_X86_64_RBP] = (uint64_t)here.uc_mcontext.gregs[REG_RBP];
 *		sample.regs[SAMPLE_X86_64_RSP] = (uint64_t)here.uc_mcontext.gregs[REG_RSP];
 *		sample.regs[SAMPLE_X86_64_RIP] = (uint64_t)here.uc_mcontext.gregs[REG_RIP];
 *		sample.regs_known =
 *			1 << SAMPLE_X86_64_RBP | 1 << SAMPLE_X86_64_RSP | 1 << SAMPLE_X86_64_RIP;
 *		sample.stack.addr = sample.regs[SAMPLE_X86_64_RSP];
 *		sample.stack.bytes = (const uint8_t *)sample.stack.addr;
 *		sample.stack.size = (uint64_t)argv - sample.stack.addr;
 *		if (argc != 1 || n < 0 || unwind_cache_new(&options, &cache) < 0 ||
 *		    unwind_space_new(cache, &files, self, &space) < 0 ||
 *		    unwind_space_set_maps(space, maps, (size_t)n) < 0)
 *			return 1;
 *		unwind_walk_sample(space, &sample, UNWIND_FRAMES_MAX, &stack);
 *		for (const struct unwind_frame *f = stack.frames; f < stack.frames + stack.n; f++)
 *			if (unwind_symbol_at(space, f->addr - !f->is_leaf, &name, &offset) == 0)
 *				puts(name);
 *		puts(unwind_end_name(stack.end));
 *		return 0;
 *	}
 */
#ifndef LIB_UNWIND_UNWIND_H
#define LIB_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"
#include "lib/base/file_identity.h"
#include "lib/base/util.h"
#include "lib/base/watch_part.h"
#include "lib/capture/sample.h"

struct unwind_cache; /* the images of all targets of this process */
struct unwind_space; /* the address space of one target */

/*
 * How the library gets files. Each function blocks until it has the answer. It
 * returns 0 and a read-only descriptor, which the library closes, or a negative
 * errno. An image without its file has no call frame information and no names.
 * ctx is the last argument of unwind_space_new().
 */
struct unwind_files {
	/*
	 * Opens the file that is mapped at [start, end). If the mapping has no file
	 * (the vDSO), or its file cannot be opened, *ret_fd has a copy of the bytes.
	 */
	int (*image)(void *ctx, uint64_t start, uint64_t end, int *ret_fd);
	/*
	 * Opens a separate debug file; build_id is lower-case hex. NULL: no such files. After
	 * -ESRCH, -EIO or -ETIMEDOUT the library asks again for the next space that maps the image,
	 * here and in debug_link; any other error says that there is no such file.
	 */
	int (*debug)(void *ctx, const char *build_id, int *ret_fd);
	/*
	 * Opens a separate debug file by name, from the .gnu_debuglink section of
	 * the file mapped at [start, end): one path component of printable ASCII
	 * that does not begin with a dot. NULL: no such files.
	 */
	int (*debug_link)(void *ctx, uint64_t start, uint64_t end, const char *name, int *ret_fd);
	/* Opens /tmp/perf-PID.map of the target. NULL: no perf maps. */
	int (*perf_map)(void *ctx, int *ret_fd);
	/*
	 * Returns the number of the file that was returned last, for
	 * unwind_cache_options.reading; 0 if the file has no number. NULL: no file
	 * has a number.
	 */
	uint32_t (*number)(void *ctx);
};

/* The size of a debug file's name, NUL included: NAME_MAX + 1. */
#define UNWIND_DEBUG_LINK_MAX 256

/* The reason for which a walk has ended. */
enum unwind_end {
	UNWIND_END_ROOT,   /* the outermost frame, by the CFI or the ABI */
	UNWIND_END_NO_MAP, /* the pc is in no executable mapping */
	UNWIND_END_NO_CFI, /* no CFI for the pc, and no guess found a caller */
	/* The rule gives an impossible stack pointer: misaligned, not above the
	   last one, or not on the stack. */
	UNWIND_END_BAD_CFA,
	UNWIND_END_UNREADABLE,	     /* stack bytes are needed that were not copied */
	UNWIND_END_UNKNOWN_REGISTER, /* a register is needed whose value is unknown */
	UNWIND_END_CAPPED,	     /* the copy of the stack is cut: SAMPLE_CAPPED */
	UNWIND_END_MAX_FRAMES,	     /* more frames than the caller's limit */
	UNWIND_END_SIGNALS,	     /* more than 64 signal frames */
	UNWIND_END_N
};

/*
 * Returns a short name for statistics and tests, such as "root" or "bad_cfa". That of
 * UNWIND_END_SIGNALS is "cycle".
 */
const char *unwind_end_name(enum unwind_end end);

/*
 * Addresses of frames. If a program maps one file after the other at the same address, a frame's
 * address says in which of them it lies: bits 56 to 62 have the number of the mapping (0: the first
 * one). Addresses of user space are below 2^56. The functions that look up addresses take such
 * addresses, and the image of mapping n has an address with n in the same bits. So images do not
 * overlap. UNWIND_END_NO_MAP is the end of a walk in a mapping of which memory shows that it has
 * been replaced by an unknown one; the number is 127 then, and no image has it.
 *
 * unwind_plain_addr() returns an address without the number.
 */
#define UNWIND_VERSION_BIT 56
static inline uint64_t unwind_plain_addr(uint64_t addr)
{
	/* Addresses of the kernel (vsyscall) have all upper bits set. */
	return addr >> 63 != 0 ? addr : addr & ((UINT64_C(1) << UNWIND_VERSION_BIT) - 1);
}

/*
 * A frame. addr is what is sent to the server, which subtracts one instruction
 * from it in every frame but the leaf: the pc of the leaf, and the return
 * address of a caller. The frame that a signal interrupted, and the trampoline
 * that its handler returns to, have no call before them. Their addr is pc plus
 * unwind_after_call(0), so that the subtraction gives the pc.
 */
struct unwind_frame {
	uint64_t addr;
	uint32_t is_leaf;      /* look up addr itself; otherwise addr - 1 */
	uint32_t by_heuristic; /* found without CFI: by the code or a frame pointer */
};

#define UNWIND_FRAMES_MAX 4096

/* A function may use this many bytes below its stack pointer (x86-64 ABI). */
#define UNWIND_RED_ZONE_MAX 128

/*
 * The frames of a sample. stack_top, missing, second and second_from tell the
 * caller which bytes the next sample of the thread should have.
 */
struct unwind_stack {
	struct unwind_frame frames[UNWIND_FRAMES_MAX]; /* leaf first */
	size_t n;				       /* at least 1: the leaf */
	enum unwind_end end;
	bool has_heuristic; /* some frame is by_heuristic */
	/*
	 * The end (exclusive) of the highest bytes of the sample's first range
	 * that the walk read; 0 if the walk read none.
	 */
	uint64_t stack_top;
	/*
	 * If end is UNWIND_END_UNREADABLE or UNWIND_END_CAPPED: the end (exclusive) of the bytes
	 * above the first range that the walk needed; 0 if unknown.
	 */
	uint64_t missing;
	/*
	 * Not 0 if the walk came to another stack: the walk would continue if the
	 * second range of the sample began at this address.
	 */
	uint64_t second;
	/* The stack pointer of the first frame in the second range; 0 if none. */
	uint64_t second_from;
	/* The cost of guesses in this walk, in units of about 5 ns. */
	uint32_t guess_cost;
	/*
	 * Two stacks of one cache with the same id have the same frames (addr
	 * and is_leaf). The shared_n outermost frames are those of the stack
	 * shared_id, which was walked before. Both are 0 if no such stack is
	 * known.
	 */
	uint64_t id;
	uint64_t shared_id;
	size_t shared_n;
};

struct unwind_cache_options {
	/*
	 * The limit on memory for rows, symbols, lines and perf maps, in bytes.
	 * Above the limit the cache drops the least recently used ones, and reads
	 * them from their files again when they are needed.
	 */
	size_t max_bytes;
	/*
	 * The most files that stay open between calls: those with the lines of images, from the
	 * first sample in the image until unwind_lines_at() reads them. Above the limit the cache
	 * closes the one that it opened first, and requests it again when it is needed. Perf maps,
	 * one of each space, do not count.
	 */
	size_t max_files;
	uint64_t hash_seed;
	/*
	 * Returns the processor time that this process has used, in ns. It
	 * limits the cost of reading a file's lines. NULL: no limit.
	 */
	clock_fn cpu_ns;
	/*
	 * Memory shared with the parent process, owned by the caller. The
	 * library stores here the number of the file that it reads, or whose
	 * data it uses; 0: no file. If a file crashes this process, the parent
	 * knows which one. May be NULL.
	 */
	uint32_t *reading;
};

/* Makes an empty cache, which the caller frees. Copies options. Returns 0 or -ENOMEM. */
must_check int unwind_cache_new(const struct unwind_cache_options *options,
				struct unwind_cache **ret);
/* Frees the cache. All of its spaces must have been freed. c may be NULL. */
void unwind_cache_free(struct unwind_cache *c);

/*
 * Makes a space without mappings. files and ctx must outlive the space. Returns
 * 0 or -ENOMEM.
 */
must_check int unwind_space_new(struct unwind_cache *c, const struct unwind_files *files, void *ctx,
				struct unwind_space **ret);
/* Frees the space. s may be NULL. */
void unwind_space_free(struct unwind_space *s);

/*
 * Replaces the mappings by those in the text of /proc/PID/maps. Unchanged
 * mappings keep their images. The library requests files again that it did not
 * get before. Returns 0, -EINVAL if the text is malformed, -E2BIG above
 * UNWIND_MAPS_MAX lines, or -ENOMEM. On an error the old mappings stay.
 */
#define UNWIND_MAPS_MAX 65536
must_check int unwind_space_set_maps(struct unwind_space *s, const char *text, size_t size);

/*
 * Replaces the mappings by a single file, to look up names and lines of
 * addresses that were recorded elsewhere. The file is the one that files->image
 * returns, and may be a separate debug file. Its first segment is placed at
 * start, which must be a multiple of UNWIND_FILE_ALIGN with UNWIND_FILE_MAX
 * bytes above it. path is only what unwind_image.path gives for the file; it is
 * copied. Returns 0; -ENOEXEC if the file is no ELF file of this processor, or its
 * segments span more than UNWIND_FILE_MAX bytes; -EINVAL if it is no regular file; the
 * error of files->image; or -ENOMEM.
 */
#define UNWIND_FILE_ALIGN 4096u
#define UNWIND_FILE_MAX	  (UINT64_C(1) << 46)
must_check int unwind_space_set_file(struct unwind_space *s, const char *path, uint64_t start);

/*
 * Sets the identities of mapped files, as far as the caller knows them, so that the
 * library does not request a file that is in the cache. Affects mappings of the
 * last unwind_space_set_maps() whose file has not been requested yet.
 */
void unwind_space_set_identities(struct unwind_space *s, const struct mapped_file *files, size_t n);

/*
 * Sets *ret to true if unwind_space_set_maps() with this text would forget the mappings that others
 * have replaced, because there are too many (VERSIONS_MAX in space/versions.h). Addresses recorded
 * until now must then be looked up before the new maps are set. Returns the errors of
 * unwind_space_set_maps(); changes nothing.
 */
must_check int unwind_space_would_forget(const struct unwind_space *s, const char *text,
					 size_t size, bool *ret);

/*
 * Parts of the target's memory by which the library sees that other files than before are mapped
 * (struct watch_part). list is a number that no other list of the cache has. A new list of the same
 * number begins with all parts of the last one.
 */
struct unwind_watch {
	uint32_t list;
	size_t n;
	struct watch_part parts[WATCH_PARTS];
};

/* Returns true if *ret is to be sent to capture: the list has changed since it was sent. */
bool unwind_space_needs_watch(const struct unwind_space *s, struct unwind_watch *ret);
void unwind_space_watch_sent(struct unwind_space *s);

/* Takes a RECORD_WATCHED. Ignores another list than the last one, and an unknown number. */
void unwind_space_watched(struct unwind_space *s, uint32_t list, uint32_t number, uint64_t hash);

/* Called if capture may have lost the list: nothing is known of memory, and the list is sent again.
 */
void unwind_space_watch_again(struct unwind_space *s);

/*
 * Returns true if memory at a mapping looks like none of the files that were mapped there. The
 * mapping counts as unmapped until it looks like one, or the maps are set.
 */
bool unwind_space_has_doubt(struct unwind_space *s);

/*
 * Requests the files that the maps have where images are watched. Called after
 * unwind_space_set_maps(), since they may soon be gone.
 */
void unwind_space_open_watched(struct unwind_space *s);

/*
 * Returns in how many mappings addresses were looked up, since the last call, whose code lies more
 * than UNWIND_CODE_MAX bytes above the first segment of its file. The unwinder refuses such code:
 * it has neither call frame information nor names, so that its frames are those that frame
 * pointers give. *ret_path is the path of one of the files, valid until the maps are replaced;
 * NULL if there is none.
 */
#define UNWIND_CODE_MAX (UINT64_C(1) << 32)
uint64_t unwind_space_take_far_mappings(struct unwind_space *s, const char **ret_path);

/* Returns true if addr is in an executable mapping of the space. */
bool unwind_space_covers(const struct unwind_space *s, uint64_t addr);

/* Stack bytes of a sample: those at addresses [addr, addr + size). */
struct unwind_bytes {
	const uint8_t *bytes;
	uint64_t addr;
	size_t size;
};

/*
 * A checked sample. The record is in a ring that capture can write at any time,
 * so every field here is a copy. Only the stack bytes still are the ring's, and
 * may change while they are read: their sizes here are the only bound.
 */
struct unwind_sample {
	uint32_t tid;
	uint32_t flags; /* enum sample_flags */
	uint64_t time_ns;
	uint64_t regs_known; /* bit n: regs[n] is valid */
	uint64_t regs[SAMPLE_REGS_MAX];
	struct unwind_bytes stack;
	struct unwind_bytes second; /* size 0: none */
	struct sample_known known;
};

/*
 * Copies and checks a record of size bytes from the ring. Reads each field
 * once. *ret points to the stack bytes of the record, which must stay valid.
 * Returns 0, or -EINVAL if the record is malformed.
 */
must_check int unwind_sample_read(const struct record_sample *record, size_t size,
				  struct unwind_sample *ret);

/*
 * Walks the stack of a sample: *ret has at least the leaf, at most max_frames
 * frames (1 to UNWIND_FRAMES_MAX), and the reason why it ends.
 */
void unwind_walk_sample(struct unwind_space *s, const struct unwind_sample *sample,
			size_t max_frames, struct unwind_stack *ret);

/*
 * Returns true if the walk of this sample could not leave the first function because the sample
 * lacks the register with its return address. Then sets the sample's sp and pc. Always false on
 * processors that keep return addresses on the stack.
 */
bool unwind_lacks_return_address(const struct unwind_sample *sample,
				 const struct unwind_stack *stack, uint64_t *ret_sp,
				 uint64_t *ret_pc);

/* unwind_sample_read() and unwind_walk_sample(). Returns 0 or -EINVAL. */
must_check int unwind_walk(struct unwind_space *s, const struct record_sample *record, size_t size,
			   size_t max_frames, struct unwind_stack *ret);

/* An image, as debug_meta needs it. Valid until the space's maps are replaced. */
struct unwind_image {
	const char *path;  /* as in maps, without " (deleted)"; "[vdso]" */
	const uint8_t *id; /* build-id, or 16 bytes made from .text; may be NULL */
	size_t id_size;
	bool has_build_id;	/* id is a build-id, not made from .text */
	uint64_t addr;		/* load bias + p_vaddr of the first PT_LOAD */
	uint64_t vmaddr;	/* p_vaddr of the first PT_LOAD */
	uint64_t size;		/* from there to the end of the last PT_LOAD */
	uint64_t device, inode; /* of the file; 0, 0 for the vDSO */
	bool is_go;		/* made by Go's compiler */
	bool has_interpreter;	/* it names a dynamic linker */
};

/*
 * Finds the image that is mapped at addr. Returns 0, or -ENOENT if addr is in no
 * mapping, or the mapped file is no readable ELF file.
 */
must_check int unwind_image_at(struct unwind_space *s, uint64_t addr, struct unwind_image *ret);

/*
 * Finds the image of the first executable mapping with this path. Returns 0 or
 * -ENOENT, as unwind_image_at().
 */
must_check int unwind_image_of_path(struct unwind_space *s, const char *path,
				    struct unwind_image *ret);

/* The data that the library reads of files in addition to call frame information. */
enum unwind_symbols {
	UNWIND_SYMBOLS_NONE,  /* unwind_symbol_at() finds nothing */
	UNWIND_SYMBOLS_NAMES, /* the setting of a new space */
	UNWIND_SYMBOLS_LINES, /* names, and source lines */
};
void unwind_space_set_symbols(struct unwind_space *s, enum unwind_symbols symbols);

/*
 * Finds the symbol that covers addr, in the mapped ELF file or, if the mapping has
 * no file, in the target's perf map. The name of a PLT stub is that of the function
 * which it calls, with "@plt". Pass a return address minus one. *ret_name is mangled, and valid
 * until the next call of this module. *ret_offset is the distance in bytes from the symbol's start
 * to addr. Returns 0 or -ENOENT.
 *
 * After a return of 0 the file stays marked as in use
 * (unwind_cache_options.reading), because the caller demangles its name.
 */
must_check int unwind_symbol_at(struct unwind_space *s, uint64_t addr, const char **ret_name,
				uint64_t *ret_offset);

/*
 * Finds the start of the function that covers addr, by its FDE; no symbol is needed.
 * Returns 0, or -ENOENT if no FDE covers addr or the file cannot be read any
 * more.
 */
must_check int unwind_function_at(struct unwind_space *s, uint64_t addr, uint64_t *ret_start);

/*
 * Returns the return address of a call at addr: addr + 1 on x86-64, addr + 4 on arm64.
 * Subtracting one instruction from the result gives addr.
 */
uint64_t unwind_after_call(uint64_t addr);

/*
 * A position in the source. The texts are from the file and may contain any
 * bytes.
 */
struct unwind_line {
	const char *function; /* mangled, or NULL */
	const char *file;     /* its path on the machine that compiled it, or NULL */
	uint32_t line;	      /* 0: unknown */
};

/* Functions inlined into each other at one address, with the enclosing one. */
#define UNWIND_LINES_MAX 32

/*
 * Finds the source position of addr, if the space has UNWIND_SYMBOLS_LINES. Pass a
 * return address minus one. ret has the innermost inlined function first, and
 * last the function that the symbol names, each with the position in it. Valid
 * until the next call of this module. Returns 0 or -ENOENT. After a return of 0
 * the file stays marked as in use, as by unwind_symbol_at().
 */
must_check int unwind_lines_at(struct unwind_space *s, uint64_t addr,
			       struct unwind_line ret[UNWIND_LINES_MAX], size_t *ret_n);

/*
 * Clears the mark that unwind_symbol_at() and unwind_lines_at() left: the caller
 * has finished with the texts that they returned.
 */
void unwind_names_done(struct unwind_space *s);

/*
 * Returns the number of addresses that got no lines because reading all of their file's
 * debug information would have exceeded a limit, or because the file could not be opened or
 * was changed: the target had ended, for instance. Counts from the last call of this function.
 */
uint64_t unwind_space_take_lines_lost(struct unwind_space *s);

/* Longer mangled names are not demangled; libiberty has the same limit. */
#define UNWIND_DEMANGLE_MAX 1024

/*
 * Demangles a C++, Rust (legacy and v0) or D symbol, also one with "@plt". with_parameters adds
 * those of C++ and D functions. size is at least 1. Returns false if raw is not mangled, is too
 * long, or the result does not fit; out then has no meaning.
 */
bool unwind_demangle(const char *raw, bool with_parameters, char *out, size_t size);

#endif
