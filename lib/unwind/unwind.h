/*
 * Offline unwinding: turns a recorded sample (lib/capture/sample.h) into the
 * addresses of its frames, and an address into its image, symbol and source
 * line. This is the interface of lib/unwind. sentry-profd-unwind makes one cache
 * and, for each target, a space. It sets the maps of the space from time to time,
 * walks each sample, and looks up symbols and lines when a chunk ends.
 *
 * The library never touches the target. It gets files as descriptors through
 * struct unwind_files, because the process that runs it may not open any, and
 * reads them with pread(2). It maps no file: a file that is truncated while it
 * is mapped raises SIGBUS.
 *
 * A cache (struct unwind_cache) holds what was compiled from files. Each file
 * is one image, shared by all targets that map the file. A file is identified by device, inode,
 * size and change time; a memfd, or a file on a tmpfs, of up to 1 MiB by its size and contents.
 * When the library opens the file of an image again and finds only the change time different, as
 * after chmod(2), it compares build-ids. If neither has one, it compares ELF headers, section
 * headers and modification times. If these are equal, the image stays valid.
 *
 * A space (struct unwind_space) is the address space of one target.
 *
 * Ownership: texts and pointers in results belong to the library. Each function
 * says how long they are valid. Not thread-safe.
 *
 * Functions that can fail return 0 or a negative errno. A stack that cannot be walked to its root
 * is no error: enum unwind_end gives the reason.
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
 * The functions by which the library gets files; the caller of the library implements them. All but
 * number() return 0 and a read-only descriptor, which the library closes, or a negative errno. They
 * may block until they have the answer. Without its file an image has no call frame information
 * (CFI) and no names. ctx is that of unwind_space_new().
 */
struct unwind_files {
	/*
	 * Opens the file that is mapped at [start, end). If the mapping has no file (the vDSO), or
	 * the file cannot be opened, *ret_fd may be a memfd with a copy of the mapped bytes.
	 */
	int (*image)(void *ctx, uint64_t start, uint64_t end, int *ret_fd);
	/*
	 * Opens the separate debug file with this build-id, in lower-case hex. NULL: no such files.
	 * -ESRCH, -EIO and -ETIMEDOUT, of debug() and debug_link(), say that it is unknown whether
	 * there is a debug file: the library asks again for the next space that maps the image. Any
	 * other error says that there is none.
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
	 * Returns a number for the file that one of the functions above returned last, chosen by
	 * the caller: the library stores it in unwind_cache_options.reading. 0: the file has no
	 * number. NULL: no file has one.
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
	/* The CFI gives the caller an impossible stack pointer: misaligned, not above
	   that of the called frame, or not on the stack. */
	UNWIND_END_BAD_CFA,
	UNWIND_END_UNREADABLE,	     /* stack bytes are needed that were not copied */
	UNWIND_END_UNKNOWN_REGISTER, /* a register is needed whose value is unknown */
	UNWIND_END_CAPPED,	     /* bytes are needed that a limit cut off: SAMPLE_CAPPED */
	UNWIND_END_MAX_FRAMES,	     /* more frames than max_frames */
	UNWIND_END_SIGNALS,	     /* more than 64 signal frames */
	UNWIND_END_N
};

/*
 * Returns a short name for statistics and tests, such as "root" or "bad_cfa". That of
 * UNWIND_END_SIGNALS is "cycle": the constant was renamed, and statistics kept the name.
 */
const char *unwind_end_name(enum unwind_end end);

/*
 * Addresses of frames. A program can map several files at the same address, one after the other.
 * So bits 56 to 62 of a frame's address have a number, the version of the mapping in which the
 * frame lies: 0 for the first mapping there. These bits are free, because addresses of user space
 * are below 2^56. The functions that look up addresses take addresses with such numbers.
 * unwind_image.addr has the number, too, so that images do not overlap. 127 means that memory
 * differs from all files that are known to have been mapped there: no image has this number, and
 * a walk ends there with UNWIND_END_NO_MAP.
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
 * A frame. addr is the address that is sent to Sentry's server. From each addr but the leaf's the
 * server subtracts one instruction. So addr is
 * - in the leaf, the pc;
 * - in a caller, the return address: the subtraction gives an address within the call;
 * - in a caller without a call before its pc, unwind_after_call(pc): the subtraction gives the pc.
 *   Examples: a frame that a signal interrupted, and the trampoline to which the signal's handler
 *   returns.
 */
struct unwind_frame {
	uint64_t addr;
	uint32_t is_leaf;      /* look up addr itself; otherwise addr - 1 */
	uint32_t by_heuristic; /* uncertain: found by a guess, and not by CFI alone (walk/step.h) */
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
	 * The end (exclusive) of the highest bytes that the walk read in the
	 * sample's first range (unwind_sample.stack); 0 if it read none.
	 */
	uint64_t stack_top;
	/*
	 * If end is UNWIND_END_UNREADABLE or UNWIND_END_CAPPED: the end (exclusive) of the bytes
	 * above the first range that the walk needed; 0 if unknown.
	 */
	uint64_t missing;
	/*
	 * Not 0 if the walk ended because it came to another stack. It would continue
	 * if the second range of the sample (unwind_sample.second) began at this address.
	 */
	uint64_t second;
	/* The stack pointer of the first frame in the second range; 0 if none. */
	uint64_t second_from;
	/* The cost of guesses in this walk, in units of about 5 ns. */
	uint32_t guess_cost;
	/*
	 * Two stacks of one cache with the same id have the same frames (addr
	 * and is_leaf). The shared_n outermost frames are equal to those of an
	 * earlier stack, which has the id shared_id. shared_n and shared_id are 0 if
	 * no such stack is known.
	 */
	uint64_t id;
	uint64_t shared_id;
	size_t shared_n;
};

struct unwind_cache_options {
	/*
	 * The limit on memory for compiled CFI, symbols, lines and perf maps, in bytes.
	 * Above the limit the cache drops those of the least recently used images and
	 * perf maps, and reads them from their files again when they are needed.
	 */
	size_t max_bytes;
	/*
	 * The most files that stay open between calls. In spaces with UNWIND_SYMBOLS_LINES the
	 * cache keeps the file with an image's lines open from the first sample in the image until
	 * unwind_lines_at() reads the lines. Above the limit the cache closes the file that it
	 * opened first, and requests that file again when the lines are needed. Perf maps, one of
	 * each space, do not count.
	 */
	size_t max_files;
	uint64_t hash_seed; /* random, since targets choose what is hashed */
	/*
	 * Returns the processor time that this process has used, in ns. With it the library
	 * limits the cost of reading lines, and of reading dropped files again. NULL: no limit.
	 */
	clock_fn cpu_ns;
	/*
	 * Memory shared with the parent process, owned by the caller. Here the
	 * library stores the number (unwind_files.number) of the file that it
	 * reads, or whose data it uses; 0: no file. If this process crashes at a
	 * file, the parent finds the file's number here. May be NULL.
	 */
	uint32_t *reading;
};

/* Makes an empty cache, which the caller frees. Copies options. Returns 0 or -ENOMEM. */
must_check int unwind_cache_new(const struct unwind_cache_options *options,
				struct unwind_cache **ret);
/* Frees the cache. All of its spaces must have been freed. c may be NULL. */
void unwind_cache_free(struct unwind_cache *c);

/*
 * Makes a space without mappings, which the caller frees. The library passes ctx to the functions
 * of files. c, files and ctx must outlive the space. Returns 0 or -ENOMEM.
 */
must_check int unwind_space_new(struct unwind_cache *c, const struct unwind_files *files, void *ctx,
				struct unwind_space **ret);
/* Frees the space. s may be NULL. */
void unwind_space_free(struct unwind_space *s);

/*
 * Replaces the mappings by those in the text of /proc/PID/maps. Unchanged
 * mappings keep their images. Files that the library has requested without success
 * are requested again when they are needed. Returns 0, -EINVAL if the text is malformed, -E2BIG
 * above UNWIND_MAPS_MAX lines, or -ENOMEM. On an error the old mappings stay.
 */
#define UNWIND_MAPS_MAX 65536
must_check int unwind_space_set_maps(struct unwind_space *s, const char *text, size_t size);

/*
 * Replaces the mappings by a single file, to look up names and lines of
 * addresses that were recorded elsewhere. The file is the one that files->image
 * returns, and may be a separate debug file. Its first segment is placed at
 * start, which must be a multiple of UNWIND_FILE_ALIGN with UNWIND_FILE_MAX
 * bytes above it. path becomes unwind_image.path and has no other use; it is
 * copied. Returns 0; -ENOEXEC if the file is no ELF file of this processor, or its
 * segments span more than UNWIND_FILE_MAX bytes; -EINVAL if it is not regular or is empty;
 * -ENODATA if it was truncated meanwhile; -ENOMEM; -ENOSPC if too many images are in use; or the
 * error of files->image, fstat(2) or pread(2). On an error the old mappings stay.
 */
#define UNWIND_FILE_ALIGN 4096u
#define UNWIND_FILE_MAX	  (UINT64_C(1) << 46)
must_check int unwind_space_set_file(struct unwind_space *s, const char *path, uint64_t start);

/*
 * Sets the identities of n mapped files, as far as the caller knows them, so that the
 * library does not request a file that is in the cache. Ignores elements whose start is
 * not the start of a mapping. Call it directly after unwind_space_set_maps(): identities
 * only matter until a file is requested.
 */
void unwind_space_set_identities(struct unwind_space *s, const struct mapped_file *files, size_t n);

/*
 * A space remembers mappings that are not in its maps any more, so that addresses in them can still
 * be looked up. Sets *ret to true if unwind_space_set_maps() with this text would forget them all:
 * there would be too many (VERSIONS_MAX in space/versions.h), or the text has no mappings, because
 * the target has ended. Then look up all addresses in the space before setting the maps. Returns
 * the errors of unwind_space_set_maps(); does not change the space.
 */
must_check int unwind_space_would_forget(const struct unwind_space *s, const char *text,
					 size_t size, bool *ret);

/*
 * A list of parts of the target's memory (struct watch_part). The caller sends the list to capture,
 * which reports the hash of a part when the hash changes. The library compares these hashes with
 * those of its files. So it notices when the target has mapped another file since the maps were
 * read. A list can grow; its parts then keep their indices.
 */
struct unwind_watch {
	uint32_t list; /* the list's number, which no other list of the cache has */
	size_t n;
	struct watch_part parts[WATCH_PARTS];
};

/*
 * Returns true, and sets *ret to the list, if the list has changed since
 * unwind_space_watch_sent(). Call unwind_space_watch_sent() when *ret has been sent to capture.
 */
bool unwind_space_needs_watch(const struct unwind_space *s, struct unwind_watch *ret);
void unwind_space_watch_sent(struct unwind_space *s);

/*
 * Stores a hash that capture has reported by RECORD_WATCHED (lib/capture/sample.h): that of
 * parts[number] in the list with this number (unwind_watch.list). Ignores hashes of a former list,
 * and of parts that the list does not have.
 */
void unwind_space_watched(struct unwind_space *s, uint32_t list, uint32_t number, uint64_t hash);

/* Call it if capture may have lost the list: forgets all hashes, and has the list sent again. */
void unwind_space_watch_again(struct unwind_space *s);

/*
 * Returns true if the maps are probably out of date, and should be set again soon:
 * - the memory of a mapping differs from its file (a walk takes such a mapping as unmapped);
 * - the file of a mapping could not be opened; or
 * - memory looks like a file whose mapping the maps do not have any more.
 */
bool unwind_space_has_doubt(struct unwind_space *s);

/*
 * Requests the files of the present mappings at those addresses where memory is watched: the target
 * may soon map other files there. Call it after unwind_space_set_maps().
 */
void unwind_space_open_watched(struct unwind_space *s);

/*
 * Returns the number of mappings with far code in which an address was looked up for the first time
 * since the last call. Far code lies more than UNWIND_CODE_MAX bytes above the first segment of its
 * file. The library reads neither CFI nor names of far code, and finds its callers by frame
 * pointers only. *ret_path is the path of one of the files, valid until the maps are replaced; NULL
 * if the result is 0, or the maps have been replaced since.
 */
#define UNWIND_CODE_MAX (UINT64_C(1) << 32)
uint64_t unwind_space_take_far_mappings(struct unwind_space *s, const char **ret_path);

/* Returns true if addr, without a mapping's number, is in an executable mapping of the space. */
bool unwind_space_covers(const struct unwind_space *s, uint64_t addr);

/* Stack bytes of a sample: those at addresses [addr, addr + size). */
struct unwind_bytes {
	const uint8_t *bytes;
	uint64_t addr;
	size_t size;
};

/*
 * A checked sample (RECORD_SAMPLE, whose members struct record_sample explains). The record is in a
 * ring that capture can write at any time, so every member here is a copy. Only stack.bytes and
 * second.bytes point into the ring, and the bytes may change while they are read.
 */
struct unwind_sample {
	uint32_t tid;
	uint32_t flags; /* enum sample_flags */
	uint64_t time_ns;
	uint64_t regs_known; /* bit n: regs[n] is valid */
	uint64_t regs[SAMPLE_REGS_MAX];
	struct unwind_bytes stack;  /* the first range, from the stack pointer or red zone up */
	struct unwind_bytes second; /* a part of another stack of the thread; size 0: none */
	struct sample_known known;  /* the ends of the thread's stacks, as far as capture knew */
};

/*
 * Copies and checks a record of size bytes from the ring. Reads each field
 * once. *ret points to the stack bytes of the record, so the record must stay in the ring as long
 * as *ret is used. Returns 0, or -EINVAL if the record is malformed.
 */
must_check int unwind_sample_read(const struct record_sample *record, size_t size,
				  struct unwind_sample *ret);

/*
 * Walks the stack of a sample. *ret gets the leaf, its callers up to max_frames frames
 * (1 to UNWIND_FRAMES_MAX), and the reason for which the walk has ended. Always succeeds.
 */
void unwind_walk_sample(struct unwind_space *s, const struct unwind_sample *sample,
			size_t max_frames, struct unwind_stack *ret);

/*
 * Returns true if stack, the result of walking the sample, has no caller because the sample lacks
 * the register with the return address. Then sets *ret_sp and *ret_pc to the sample's sp and pc:
 * send them to capture, as a request for the register. Always false on x86-64, which keeps return
 * addresses on the stack.
 */
bool unwind_lacks_return_address(const struct unwind_sample *sample,
				 const struct unwind_stack *stack, uint64_t *ret_sp,
				 uint64_t *ret_pc);

/* Calls unwind_sample_read() and unwind_walk_sample(). Returns the result of the first. */
must_check int unwind_walk(struct unwind_space *s, const struct record_sample *record, size_t size,
			   size_t max_frames, struct unwind_stack *ret);

/* An image, as Sentry's debug_meta describes it. Valid until the space's maps are replaced. */
struct unwind_image {
	const char *path;  /* as in maps, without " (deleted)"; "[vdso]" */
	const uint8_t *id; /* build-id, or 16 bytes made from .text; may be NULL */
	size_t id_size;
	bool has_build_id;	/* id is a build-id, not made from .text */
	uint64_t addr;		/* load bias + vmaddr, with the mapping's number in bits 56 to 62 */
	uint64_t vmaddr;	/* p_vaddr of the first PT_LOAD */
	uint64_t size;		/* bytes from vmaddr to the end of the last PT_LOAD */
	uint64_t device, inode; /* of the file; 0, 0 for the vDSO */
	bool is_go;		/* made by Go's compiler */
	bool has_interpreter;	/* the file names a dynamic linker (PT_INTERP) */
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

/*
 * What the library reads of files in addition to CFI. unwind_space_set_symbols() sets it for the
 * look-ups in a space from then on.
 */
enum unwind_symbols {
	UNWIND_SYMBOLS_NONE,  /* unwind_symbol_at() finds nothing */
	UNWIND_SYMBOLS_NAMES, /* the setting of a new space */
	UNWIND_SYMBOLS_LINES, /* names, and source lines */
};
void unwind_space_set_symbols(struct unwind_space *s, enum unwind_symbols symbols);

/*
 * Finds the symbol that covers addr, in the mapped ELF file or, if the mapping has
 * no image, in the target's perf map. The name of a PLT stub is the name of the function that
 * the stub calls, with "@plt". Pass a return address minus one. *ret_name is mangled, and valid
 * until the next call of the library. *ret_offset is the distance in bytes from the symbol's start
 * to addr. Returns 0, or -ENOENT if no symbol is found.
 *
 * After a return of 0 the file stays marked as in use (unwind_cache_options.reading) until
 * unwind_names_done(), because the caller demangles the name, and may crash in doing so.
 */
must_check int unwind_symbol_at(struct unwind_space *s, uint64_t addr, const char **ret_name,
				uint64_t *ret_offset);

/*
 * Finds the start of the function that covers addr, by its description in the CFI (FDE); no symbol
 * is needed. *ret_start has the mapping's number in its upper bits, as addr. Returns 0, or -ENOENT
 * if no FDE covers addr or the file cannot be read any more.
 */
must_check int unwind_function_at(struct unwind_space *s, uint64_t addr, uint64_t *ret_start);

/*
 * Returns the address from which the server's subtraction of one instruction (struct unwind_frame)
 * gives addr: addr + 1 on x86-64, addr + 4 on aarch64.
 */
uint64_t unwind_after_call(uint64_t addr);

/*
 * A position in the source. The texts are from the debug information and may contain any
 * bytes.
 */
struct unwind_line {
	const char *function; /* mangled, or NULL */
	const char *file;     /* its path on the machine that compiled it, or NULL */
	uint32_t line;	      /* 0: unknown */
};

/* The most functions at one address: the inlined ones, and the one that contains them. */
#define UNWIND_LINES_MAX 32

/*
 * Finds the source positions of addr. Pass a return address minus one. ret gets *ret_n elements:
 * first the innermost inlined function, last the function that the symbol names, each with the
 * position in it. The texts are valid until the next call of the library. Returns 0, or -ENOENT if
 * no lines are found, or the space does not have UNWIND_SYMBOLS_LINES. After a return of 0 the file
 * stays marked as in use, as by unwind_symbol_at().
 */
must_check int unwind_lines_at(struct unwind_space *s, uint64_t addr,
			       struct unwind_line ret[UNWIND_LINES_MAX], size_t *ret_n);

/*
 * Clears the mark that unwind_symbol_at() and unwind_lines_at() left: the caller
 * has finished with the texts that they returned.
 */
void unwind_names_done(struct unwind_space *s);

/*
 * Returns how often since the last call of this function unwind_lines_at() found no lines for one
 * of these reasons:
 * - reading all debug information of the file would have exceeded a limit;
 * - the file or its debug file could not be opened, for instance because the target had ended;
 * - the file has changed, or memory or processor time was short.
 */
uint64_t unwind_space_take_lines_lost(struct unwind_space *s);
/*
 * Returns the path of a file of which unwind_lines_at() found no lines since the last call because
 * of a limit, valid until the maps are replaced. NULL: none, or the maps have been replaced since.
 */
const char *unwind_space_take_lines_limited(struct unwind_space *s);

/* Longer mangled names are not demangled; libiberty has the same limit. */
#define UNWIND_DEMANGLE_MAX 1024

/*
 * Demangles a C++, Rust (legacy and v0) or D symbol, also one with "@plt". with_parameters: the
 * names of C++ and D functions get their parameters. size: bytes of out, at least 1. Returns false
 * if raw is not mangled, is longer than UNWIND_DEMANGLE_MAX or too costly, or if the result does
 * not fit; out then has no meaning.
 */
bool unwind_demangle(const char *raw, bool with_parameters, char *out, size_t size);

#endif
