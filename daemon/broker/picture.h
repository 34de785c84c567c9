/*
 * --output FILE: one file in a format of sentry-profctl convert, for the
 * profile of a whole run.
 *
 * The run writes its envelopes into a private directory beside the file. At the
 * end the broker starts sentry-profctl as a process of the caller's user
 * without any capability, which may open nothing for writing. It reads that
 * directory and writes to a descriptor: the file under a temporary name, opened
 * at the start with the rights of the caller. The file gets its name when it is
 * complete, and the directory is removed. Where the conversion fails the
 * directory stays, and a line names it.
 *
 * A broker that is killed leaves both, the directory and the temporary file.
 */
#ifndef DAEMON_BROKER_PICTURE_H
#define DAEMON_BROKER_PICTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/delivery/output.h"
#include "daemon/common/output_format.h"
#include "lib/base/util.h"

struct options;

struct picture {
	int exe_fd; /* sentry-profctl; -1: none is asked for */
	int dir_fd; /* where the file is to be */
	int fd;	    /* the file; -1: it has its name, or is not opened */
	char temporary[NAME_MAX + 1];
	const char *name; /* within the directory */
	int32_t pid;	  /* of sentry-profctl; 0: it does not run */
	int status;	  /* of wait(2), when it has ended */
	bool is_made;	  /* the file is there */
};

/*
 * Finds sentry-profctl, opens the file under its temporary name, and makes the
 * directory of envelopes. With the rights of the caller: before the broker
 * gives up its own. path stays in use. On a fault prints one line and returns
 * -errno.
 */
must_check int picture_open(struct picture *p, const char *path, struct output *ret_output);

/*
 * Starts the conversion, when all envelopes are written into o: format is one of
 * sentry-profctl convert. picture_reaped notes its end; p->pid is not 0 until then.
 * Returns 0 or -errno.
 */
must_check int picture_start(struct picture *p, const struct output *o, uint32_t nice_steps,
			     const char *format);
/* Kills the conversion, if it runs. */
void picture_stop(const struct picture *p);
/*
 * The conversion has ended, or could not be started (error: what picture_start returned).
 * Gives the file its name, path; where the file cannot be made a line says why, and where the
 * envelopes are. hurried: a signal has asked the broker to end meanwhile.
 */
void picture_finish(struct picture *p, const struct output *o, const char *path, int error,
		    bool hurried);

/* A child has ended, as wait(2) says. True if it was the converter. */
bool picture_reaped(struct picture *p, int32_t pid, int status);

/* Removes what has not become the file. Safe on one that was never opened. */
void picture_close(struct picture *p);

/*
 * After a local run that was asked to print: a line on standard error with what
 * shows the file, or the envelopes in the directory of --output.
 */
void picture_tell_next(const struct picture *p, const struct output *o,
		       const struct options *options);

#endif
