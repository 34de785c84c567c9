/*
 * The program that a target runs: its address space (mappings, images), its name,
 * its release and its environment. An exec replaces it by another program.
 *
 * The files and texts that these are read from come from the broker
 * (daemon/unwind/request.h), so most functions here wait for the broker. Each stream
 * (daemon/unwind/stream.h) has one program.
 *
 * Times are CLOCK_MONOTONIC, in ns. Those of work, opened_ns and early_file_ns are read
 * from the clock in this process. All others are times of records, which capture wrote
 * up to half a second earlier.
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
 * The elapsed time that this process has worked for a target: the target's share of
 * unwind's cost. Time in which the process waits for the broker does not count.
 */
struct work {
	uint64_t since_ns; /* beginning of the present work; 0: none */
	uint64_t sum_ns;
};

/* The time between these two calls is added to sum_ns. work_end() alone does nothing. */
void work_begin(struct work *w, uint64_t now_ns);
void work_end(struct work *w, uint64_t now_ns);
/* Reads the clock, and adds the present work up to now to sum_ns. */
void work_update(struct work *w);

/* The identity of a program: C strings from FILE_KIND_PROGRAM. Each is "" if it is unknown. */
struct program_identity {
	struct buf exe;	    /* path of the executable, without " (deleted)" */
	struct buf file;    /* device, inode and modification time of the executable, as text */
	struct buf cmdline; /* argv[0] */
	struct release_names names;
};

/*
 * When the maps are read again. A pc in no mapping shows that a file has been mapped since
 * they were read: then they are read again if they are older than MAPS_MISS_NS, or than
 * MAPS_DOUBT_NS if memory shows that a file has been replaced (unwind_space_has_doubt()). A
 * file without a fingerprint that was replaced shows in no sample. So the maps are also read every
 * MAPS_EVERY_NS or, if fewer than MAPS_SAMPLES samples came since, every MAPS_SELDOM_NS. Reading
 * maps takes 30 system calls of three processes: for a hundred targets that wake once a second it
 * took a third of the CPU time of the broker and unwind. If the maps of a program cannot be read,
 * unwind reads them again as after a miss.
 *
 * A program maps its libraries soon after its first sample, which may be in the dynamic linker. So
 * its maps are first read again at once after a miss, and then after half of the time between the
 * first reading and the last one, until that is MAPS_MISS_NS: some fourteen times at most.
 * Otherwise a command that ends within MAPS_MISS_NS had no names at all.
 *
 * A slow reading delays the next one, by MAPS_COST times the duration of the reading (by
 * MAPS_YOUNG_COST times in that first time, by MAPS_DOUBT_COST times in doubt), but at most by
 * MAPS_SELDOM_NS. Otherwise a process with 65,530 mappings of files with long paths would keep
 * unwind and the broker's helper busy.
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
	const struct msg_session_open *open; /* owned by the caller */
	struct work *work;		     /* owned by the caller */
	struct unwind_space *space;
	struct program_identity identity;
	char release[MSG_TEXT_MAX];	/* "": not determined yet */
	char environment[MSG_TEXT_MAX]; /* "": not determined yet */
	/* The release is "NAME@unknown" or "unknown": no source gave one. */
	bool release_is_unknown;
	bool has_maps;
	uint64_t maps_read_ns;	/* time_ns of the record for which the maps were last read */
	uint64_t maps_first_ns; /* the same for the first reading; 0: none yet */
	uint64_t maps_cost_ns;	/* how long that reading took */
	uint64_t maps_samples;	/* samples since then */
	uint64_t opened_ns;	/* when program_open() was called */
	/*
	 * When the newest early file came. Early files are FILE_KIND_PROGRAM, maps and
	 * images that come within 2 s after opened_ns.
	 */
	uint64_t early_file_ns;
};

/*
 * Requests the identity of the program that the process runs now, and replaces the
 * program that p had. p is zero before its first use. open, work and cache must outlive
 * p. Without an answer, because the process has ended, the identity is unknown; that is
 * no error. Returns 0, or -ENOMEM: then p still has the old program.
 */
must_check int program_open(struct program *p, const struct msg_session_open *open,
			    struct work *work, struct unwind_cache *cache);
/* Frees everything that p owns. Safe on a zero-initialised struct. */
void program_fini(struct program *p);

/*
 * Records that the program ended at time_ns, by an exec. If an early file came after
 * time_ns, the files may belong to the next program, which may have other code at the same
 * addresses. Then this removes the program's maps and identity, and its release unless the
 * user has set one.
 */
void program_ended(struct program *p, uint64_t time_ns);

/*
 * Requests the identity of the program again. Returns true if the process runs another executable
 * now; false also if the broker cannot tell.
 */
bool program_is_other(struct program *p);

/*
 * Counts a sample of time now_ns. Returns true if the caller has to read the maps before it
 * unwinds that sample, because of their age, or because the program has none yet.
 */
must_check bool program_maps_due(struct program *p, uint64_t now_ns);

/*
 * Returns true if the caller has to read the maps because a pc of a sample of time now_ns is
 * in no mapping.
 */
must_check bool program_maps_due_after_miss(const struct program *p, uint64_t now_ns);

/*
 * Requests the text of the maps, for program_set_maps(). now_ns is the time of the newest
 * record. The caller frees *ret. Returns 0, or a negative errno: usually the process is
 * ending.
 */
must_check int program_get_maps(struct program *p, uint64_t now_ns, struct buf *ret);

/* As unwind_space_would_forget(), but *ret is false for the first maps. */
must_check int program_would_forget(const struct program *p, const struct buf *maps, bool *ret);

/* Sets the maps. Errors are those of unwind_space_set_maps(). */
must_check int program_set_maps(struct program *p, const struct buf *maps);

/*
 * Return the release and the environment of the program's chunks, valid until program_open()
 * or program_fini(). They are determined at the first call. The first of these that is set
 * counts: the value that the user gave for the target, the target's environment variables,
 * the daemon's own, a default.
 */
const char *program_release(struct program *p);
const char *program_environment(struct program *p);

/* Returns the executable's file name, or "unknown". */
#define PROGRAM_NAME_SIZE 129
void program_name(struct program *p, char ret[PROGRAM_NAME_SIZE]);

#endif
