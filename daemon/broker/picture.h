/*
 * --output FILE: one file in a format of sentry-profctl convert, with the profile of a whole
 * run.
 *
 * The run writes its envelopes into a private directory beside the file. The file is opened at
 * the start, under a temporary name and with the rights of the caller. At the end the broker
 * starts sentry-profctl as a process of the caller's user, without capabilities and without the
 * right to open files for writing. sentry-profctl reads the directory and writes to the
 * descriptor of the file. When the file is complete it is renamed to its name, and the directory
 * is removed. If the conversion fails the directory stays, and a log line names it.
 *
 * A broker that is killed leaves the directory and the temporary file behind.
 */
#ifndef DAEMON_BROKER_PICTURE_H
#define DAEMON_BROKER_PICTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/delivery/output.h"
#include "lib/base/util.h"

struct options;

struct picture {
	int exe_fd; /* the executable sentry-profctl; -1: no --output FILE */
	int dir_fd; /* the directory of the file */
	int fd;	    /* the file; -1: not open, or renamed to its name */
	char temporary[NAME_MAX + 1];
	const char *name; /* name of the file in dir_fd */
	int32_t pid;	  /* of sentry-profctl; 0: not running */
	int status;	  /* as of wait(2), when sentry-profctl has ended */
	bool is_made;	  /* the file is complete and has its name */
};

/*
 * Finds sentry-profctl, opens the file under its temporary name, and makes the directory of
 * envelopes, *ret_output. Call it before the broker drops its privileges, so that the rights of
 * the caller apply. path stays in use. On an error prints one line and returns -errno.
 */
must_check int picture_open(struct picture *p, const char *path, struct output *ret_output);

/*
 * Starts the conversion. Call it when all envelopes are written into o. format is a format of
 * sentry-profctl convert. nice_steps: by how much the broker's priority was raised, which is
 * undone for the process. p->pid is not 0 until picture_reaped() has recorded the end. Returns 0
 * or -errno.
 */
must_check int picture_start(struct picture *p, const struct output *o, uint32_t nice_steps,
			     const char *format);
/* Kills the conversion, if it runs. */
void picture_stop(const struct picture *p);
/*
 * Handles the end of the conversion: renames the file to path and clears the directory. error:
 * what picture_start() returned. hurried: a signal asked the broker to end meanwhile. On a
 * failure logs a line with the reason and the directory of the envelopes.
 */
void picture_finish(struct picture *p, const struct output *o, const char *path, int error,
		    bool hurried);

/* A child pid has ended with this status of wait(2). Returns true if it was the converter. */
bool picture_reaped(struct picture *p, int32_t pid, int status);

/*
 * Removes the temporary file, if it has not been renamed, and closes the descriptors. Safe after
 * a failed picture_open().
 */
void picture_close(struct picture *p);

/*
 * Prints on standard error, after a local run, the command that shows the file or the envelopes
 * in the directory of --output.
 */
void picture_tell_next(const struct picture *p, const struct output *o,
		       const struct options *options);

#endif
