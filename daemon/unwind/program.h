/*
 * The program that a target runs: its address space (mappings and their files), its name, its
 * release and its environment. Each stream (daemon/unwind/stream.h) has one program. An exec
 * replaces it by another program.
 *
 * All files come from the broker (daemon/unwind/request.h), so most functions here wait for the
 * broker. While they wait, the work of the target is paused (struct work).
 *
 * "Maps" are the text of /proc/PID/maps: a list of the target's mappings.
 *
 * Times are CLOCK_MONOTONIC, in ns. Those of work, opened_ns, identity_ns and early_file_ns are
 * read from the clock in this process. All others are times of records, which capture wrote up to
 * half a second earlier.
 */
#ifndef DAEMON_UNWIND_PROGRAM_H
#define DAEMON_UNWIND_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/release.h"
#include "lib/base/buf.h"
#include "lib/unwind/unwind.h"

/*
 * The elapsed time for which this process has worked for a target: the target's share of unwind's
 * cost. Time in which the process waits for the broker does not count. Initialise to zeros.
 */
struct work {
	uint64_t since_ns; /* beginning of the work in progress; 0: no work is in progress */
	uint64_t sum_ns;
};

/* work_end() adds the time since work_begin() to sum_ns; without work_begin() it does nothing. */
void work_begin(struct work *w, uint64_t now_ns);
void work_end(struct work *w, uint64_t now_ns);
/* Reads the clock, and adds the work in progress up to now to sum_ns. The work goes on. */
void work_update(struct work *w);

/* The identity of a program, read from a FILE_KIND_PROGRAM. Each string is "" if it is unknown. */
struct program_identity {
	struct buf exe;	    /* path of the executable, without " (deleted)" */
	struct buf file;    /* device, inode and modification time of the executable, as text */
	struct buf cmdline; /* argv[0] */
	/* All arguments with spaces between them, in UTF-8, without control characters. */
	struct buf command_line;
	struct release_names names;
};

/*
 * When the maps are read: at the first sample, and again when the last reading is old enough:
 *
 *	case						least age of the last reading
 *	miss or doubt in a young program		more than half
 *	doubt in an older program			MAPS_DOUBT_NS
 *	miss in an older program			MAPS_MISS_NS
 *	all readings have failed			MAPS_MISS_NS
 *	else, MAPS_SAMPLES samples since the reading	MAPS_EVERY_NS
 *	else, fewer samples since the reading		MAPS_SELDOM_NS
 *
 * - Miss: a pc in no mapping, so a file has been mapped since the last reading.
 * - Doubt: memory shows that a file has been replaced (unwind_space_has_doubt()).
 * - half: half of the time from the first reading to the last. A program is young as long as half
 *   is below MAPS_MISS_NS, for some fourteen readings at most. Example: with a miss every 10 ms the
 *   maps are read at 0, 10, 20, 40, 70, 110, 170, 260 and 400 ms; then half is 200 ms, and the
 *   program is no longer young. Reason: a program maps its libraries soon after its first sample,
 *   which may be in the dynamic linker. With MAPS_MISS_NS alone, a command that ends within that
 *   time had no names at all.
 * - MAPS_EVERY_NS: some files have no fingerprint, so no doubt shows that they were replaced.
 * - MAPS_SELDOM_NS: a reading takes 30 system calls of three processes. For a hundred targets that
 *   wake once a second it took a third of the CPU time of the broker and unwind.
 *
 * A slow reading raises the least age to its own duration times a factor, but at most to
 * MAPS_SELDOM_NS. The factor is MAPS_YOUNG_COST for a miss or doubt in a young program,
 * MAPS_DOUBT_COST for a doubt in an older program, else MAPS_COST. Example: after a reading of 50
 * ms the least age for a miss in an older program is 1 s, and not 200 ms. Without this, a process
 * with 65,530 mappings of files with long paths would keep unwind and the broker's helper busy.
 */
#define MAPS_MISS_NS	(200 * NS_PER_MS)
#define MAPS_DOUBT_NS	(50 * NS_PER_MS)
#define MAPS_EVERY_NS	(5 * NS_PER_SEC)
#define MAPS_SAMPLES	64
#define MAPS_SELDOM_NS	(20 * NS_PER_SEC)
#define MAPS_COST	20
#define MAPS_DOUBT_COST 5
#define MAPS_YOUNG_COST 2

struct program {
	const struct msg_session_open *open; /* options of the session; owned by the caller */
	struct work *work;		     /* of the target; owned by the caller */
	struct unwind_space *space;
	struct program_identity identity;
	char release[MSG_TEXT_MAX];	/* "": not determined yet */
	char environment[MSG_TEXT_MAX]; /* "": not determined yet */
	/* The release is "NAME@unknown" or "unknown": no source gave one. */
	bool release_is_unknown;
	bool has_maps;		/* program_set_maps() has succeeded */
	uint64_t maps_read_ns;	/* time_ns of the record for which the maps were last read */
	uint64_t maps_first_ns; /* the same for the first reading; 0: none yet */
	uint64_t maps_cost_ns;	/* duration of the last reading */
	uint64_t maps_samples;	/* samples since the last reading */
	uint64_t opened_ns;	/* when program_open() was called */
	uint64_t identity_ns;	/* when the identity had come */
	/*
	 * When the newest early file came; 0: none. Early files are FILE_KIND_PROGRAM, maps and
	 * images that come within 2 s after opened_ns.
	 */
	uint64_t early_file_ns;
};

/*
 * Replaces the program in p by the one that the target's process runs now, and requests its
 * identity. p is zero before its first use. open, work and cache must outlive p, and p must not
 * move. Returns 0, or -ENOMEM: then p still has the old program. Also returns 0 if the identity
 * cannot be read, for example because the process has ended: the identity is then unknown.
 */
must_check int program_open(struct program *p, const struct msg_session_open *open,
			    struct work *work, struct unwind_cache *cache);
/* Frees everything that p owns. Safe on a zero-initialised struct. */
void program_fini(struct program *p);

/*
 * Records that the program ended at time_ns, by an exec. Call it before the chunk of the program is
 * closed; after that call program_open().
 *
 * An early file that came after time_ns may belong to the next program, which may have other code
 * at the same addresses. If there is such a file, the function
 * - removes the maps;
 * - removes the identity, if the identity came after time_ns;
 * - sets release and environment as program_release() does, but without the target's environment
 *   variables and executable: the default release is "unknown".
 *
 * Returns true if p still has the identity.
 */
bool program_ended(struct program *p, uint64_t time_ns);

/*
 * Requests the identity again, and compares the path of the executable. Returns true if the path is
 * another one now; false if not, or if the identity cannot be read. p does not change.
 */
bool program_is_other(struct program *p);

/*
 * Counts a sample of time now_ns. Returns true if the maps have to be read before this sample is
 * unwound: it is the first one, or the last reading is old enough (see the table above). To read
 * the maps, call program_get_maps(), program_would_forget() and program_set_maps().
 */
must_check bool program_maps_due(struct program *p, uint64_t now_ns);

/*
 * Call it after a miss or with a doubt, for a record of time now_ns. Returns true if the last
 * reading of the maps is old enough for that case, so that the caller has to read the maps.
 */
must_check bool program_maps_due_after_miss(const struct program *p, uint64_t now_ns);

/*
 * Requests the maps, for program_set_maps(). now_ns is the time of the newest record. The caller
 * frees *ret. Returns 0; the negative errno of the broker's answer, usually because the process is
 * ending; -E2BIG if the broker's file is too large; -ENOMEM; or an error of read(2). After an error
 * *ret is empty. A failed call counts as a reading in the table above.
 */
must_check int program_get_maps(struct program *p, uint64_t now_ns, struct buf *ret);

/*
 * Sets *ret to true if program_set_maps() would forget mappings that samples of the open chunk may
 * have used: the caller closes the chunk first. *ret is false for the first maps. Returns 0, or an
 * error of unwind_space_would_forget().
 */
must_check int program_would_forget(const struct program *p, const struct buf *maps, bool *ret);

/*
 * Sets the maps; the buffer stays the caller's. May request files. With the first maps, determines
 * the release and the environment. Returns 0, or an error of unwind_space_set_maps(): then the old
 * maps stay.
 */
must_check int program_set_maps(struct program *p, const struct buf *maps);

/*
 * Return the release and the environment of the program's chunks. The strings belong to p and are
 * valid until program_ended(), program_open() or program_fini(). They are determined at the first
 * call, from the first of these sources that has a value:
 * - the configuration of the target;
 * - the target's environment variables;
 * - the daemon's environment variables;
 * - a default. The default release is made from the executable (release_of_image()).
 */
const char *program_release(struct program *p);
const char *program_environment(struct program *p);
/* Returns program_identity.command_line, or NULL if it is unknown. */
const char *program_command_line(const struct program *p);

/* Writes the executable's file name, cleaned by release_clean() and cut if longer; or "unknown". */
#define PROGRAM_NAME_SIZE 129
void program_name(struct program *p, char ret[PROGRAM_NAME_SIZE]);

#endif
