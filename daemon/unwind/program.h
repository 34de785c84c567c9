/*
 * The program that a target runs: its address space (mappings, images), its name,
 * its release and its environment. An exec replaces it by another program.
 *
 * All of it comes from files that the broker opens (daemon/unwind/request.h), so
 * most functions here wait for the broker. Each stream has one program.
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
 * The time that this process has spent on a target, in ns: its share of the
 * profiler's cost. Waiting for the broker is not counted.
 */
struct work {
	uint64_t since_ns; /* beginning of the present work; 0: none */
	uint64_t sum_ns;
};

void work_begin(struct work *w, uint64_t now_ns);
void work_end(struct work *w, uint64_t now_ns);
/* Adds the present work up to now to sum_ns. */
void work_update(struct work *w);

/*
 * What a process runs, as strings; each is "" if it is unknown. file identifies the
 * executable's file (FILE_KIND_PROGRAM), cmdline begins with argv[0].
 */
struct running {
	struct buf exe, file, cmdline;
	struct release_names names;
};

/*
 * When the maps are read again. A pc in no mapping shows that something has been
 * mapped since; the maps are read again unless they are younger than
 * MAPS_UNKNOWN_NS. Nothing shows that a library was replaced by another one at the
 * same addresses, so the maps are also read every MAPS_EVERY_NS, or, where fewer
 * than MAPS_SAMPLES samples came since, every MAPS_SELDOM_NS. Reading maps takes 30
 * system calls of three processes: for a hundred targets that wake once a second
 * it took a third of the CPU time of the broker and unwind.
 */
#define MAPS_UNKNOWN_NS (200 * NS_PER_MS)
#define MAPS_EVERY_NS	(5 * NS_PER_SEC)
#define MAPS_SAMPLES	64
#define MAPS_SELDOM_NS	(20 * NS_PER_SEC)

struct program {
	const struct msg_session_open *open;
	struct work *work;
	struct unwind_space *space;
	struct running runs;
	char release[MSG_TEXT_MAX];	/* "": not determined yet */
	char environment[MSG_TEXT_MAX]; /* "": not determined yet */
	bool release_is_unknown;	/* neither the user nor a file gives a release */
	bool has_maps;
	uint64_t maps_read_ns;	/* time of the records when the maps were read */
	uint64_t maps_samples;	/* samples since then */
	uint64_t opened_ns;	/* CLOCK_MONOTONIC */
	uint64_t first_file_ns; /* CLOCK_MONOTONIC: the last of its first files came */
};

/*
 * Opens the program that the process runs now, and frees the one that p had. p is
 * zero before its first use. open, work and cache must outlive it. Returns 0, or
 * -ENOMEM: p still has the old program.
 */
must_check int program_open(struct program *p, const struct msg_session_open *open,
			    struct work *work, struct unwind_cache *cache);
void program_fini(struct program *p);

/*
 * The program ended at time_ns, by an exec. If its first files came later, they may
 * belong to the next program, which may have other code at the same addresses. The
 * program then has no maps and no name, and no release unless the user has set one.
 */
void program_ended(struct program *p, uint64_t time_ns);

/* Returns true if the process runs another executable now. */
bool program_is_other(struct program *p);

/*
 * Counts a sample at now_ns. Returns true if the maps are to be read before that
 * sample is unwound.
 */
must_check bool program_maps_expired(struct program *p, uint64_t now_ns);

/* Returns true if the maps are to be read because a pc at now_ns is in none. */
must_check bool program_maps_outdated(const struct program *p, uint64_t now_ns);

/*
 * Reads the text of the maps, at now_ns of the records, for program_set_maps().
 * Returns 0, or an error: the process is ending.
 */
must_check int program_get_maps(struct program *p, uint64_t now_ns, struct buf *ret);

/* As unwind_space_would_remap(); false for the first maps. */
must_check int program_would_remap(const struct program *p, const struct buf *maps, bool *ret);

/* Sets the maps. Errors are those of unwind_space_set_maps(). */
must_check int program_set_maps(struct program *p, const struct buf *maps);

/*
 * Return the release and the environment of the program's chunks; determined once.
 * The first of these that is set counts: the value that the user gave for the
 * target, the target's environment variables, the daemon's own, a default.
 */
const char *program_release(struct program *p);
const char *program_environment(struct program *p);

/* Returns the executable's file name, or "unknown". */
#define PROGRAM_NAME_SIZE 129
void program_name(struct program *p, char ret[PROGRAM_NAME_SIZE]);

#endif
