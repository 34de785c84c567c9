/*
 * The program that a target runs, as far as the broker's files tell: its
 * mappings, what it is called, its release. An exec makes another one.
 */
#ifndef DAEMON_UNWIND_PROGRAM_H
#define DAEMON_UNWIND_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/msg/msg_unwind.h"
#include "daemon/unwind/environ_names.h"
#include "lib/base/buf.h"
#include "lib/unwind/unwind.h"

/* Time spent on a target. */
struct work {
	uint64_t since_ns; /* 0: nothing is done for it now */
	uint64_t sum_ns;
};

void work_begin(struct work *w, uint64_t now_ns);
void work_end(struct work *w, uint64_t now_ns);
/* What is done now counts up to now. */
void work_update(struct work *w);

/*
 * What a process runs, as texts: the path of its main executable, which file
 * that is (FILE_KIND_PROGRAM), the beginning of its command line, argv[0] as a
 * string, and what its environment says. Each is "" where it is not known.
 */
struct running {
	struct buf exe, file, cmdline;
	struct environ_names names;
};

struct program {
	const struct msg_session_open *open;
	struct work *work; /* waiting for the broker is none */
	struct unwind_space *space;
	struct running runs;
	char release[MSG_TEXT_MAX];	/* "": not found out yet */
	char environment[MSG_TEXT_MAX]; /* as release */
	bool release_is_unknown;	/* no file and no user has said it */
	bool has_maps;
	uint64_t opened_ns; /* CLOCK_MONOTONIC */
	uint64_t told_ns;   /* the last of its first files came */
};

/*
 * The program of now; takes the place of the one that p had. open, work and
 * cache outlive it. p: zeroed, or as the last call left it. Returns 0 or
 * -ENOMEM; then it is the old one.
 */
must_check int program_open(struct program *p, const struct msg_session_open *open,
			    struct work *work, struct unwind_cache *cache);
void program_fini(struct program *p);

/*
 * It ended at that time, by an exec. If its first files came later, they are
 * perhaps those of the program after it, which may have other code at the same
 * addresses: then no name of its own is known, nor which release it was, unless
 * our user has said it.
 */
void program_ended(struct program *p, uint64_t time_ns);

/* Does its process run another executable by now? */
bool program_is_other(struct program *p);

/*
 * The text of its maps, for program_set_maps. Returns 0 or an error: it is
 * ending.
 */
must_check int program_get_maps(struct program *p, struct buf *ret);

/* As unwind_space_would_remap, false for the first maps. */
must_check int program_would_remap(const struct program *p, const struct buf *maps, bool *ret);

/* Takes the maps. Errors as unwind_space_set_maps. */
must_check int program_set_maps(struct program *p, const struct buf *maps);

/*
 * What its chunks say; found out once. What the user has given for the target
 * counts first, then the target's environment (daemon/unwind/environ_names.h), then
 * the daemon's own, then what is made up.
 */
const char *program_release(struct program *p);
const char *program_environment(struct program *p);

/* Of its executable, without the directory; "unknown" where it is not known. */
#define PROGRAM_NAME_SIZE 129
void program_name(struct program *p, char ret[PROGRAM_NAME_SIZE]);

#endif
