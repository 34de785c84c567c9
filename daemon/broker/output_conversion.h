/*
 * --output FILE: one file in a format of sentry-profctl convert, with the profile of a whole run.
 *
 * The run writes its envelopes into a private directory beside the file. The file is opened at the
 * start, under a temporary name and with the rights of the user who started sentry-profd. At the
 * end the broker starts sentry-profctl as a process of that user, without capabilities and without
 * the right to open files for writing. sentry-profctl reads the directory and writes to the
 * descriptor of the file. When the file is complete it is renamed to its name, and the directory is
 * removed. If the conversion fails the directory stays, and a log line names it.
 *
 * A broker that is killed leaves the directory and the temporary file behind.
 */
#ifndef DAEMON_BROKER_OUTPUT_CONVERSION_H
#define DAEMON_BROKER_OUTPUT_CONVERSION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/broker/delivery/output.h"
#include "lib/base/util.h"

struct options;

struct output_conversion {
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
 * envelopes, *ret_output. Call it before the broker drops its privileges. path must stay valid as
 * long as *c. Returns 0; or -errno, with one log line.
 */
must_check int output_conversion_open(struct output_conversion *c, const char *path,
				      struct output *ret_output);

/*
 * Starts the conversion. Call it when all envelopes are written into o. format is the name of a
 * format of sentry-profctl convert. nice_steps: by how much the broker has lowered its nice value,
 * which the process undoes. c->pid stays set until output_conversion_reaped() has recorded the end.
 * Returns 0 or -errno.
 */
must_check int output_conversion_start(struct output_conversion *c, const struct output *o,
				       uint32_t nice_steps, const char *format);
/* Kills the conversion, if it runs. */
void output_conversion_stop(const struct output_conversion *c);
/*
 * To be called when the conversion has ended or could not be started: renames the file to path and
 * clears the directory. On a failure logs a line with the reason and the directory of the
 * envelopes. error: what output_conversion_start() returned. was_interrupted: a signal asked the
 * broker to end meanwhile, so that a conversion that was killed is reported as ended by a signal.
 */
void output_conversion_finish(struct output_conversion *c, const struct output *o, const char *path,
			      int error, bool was_interrupted);

/* A child pid has ended with this status of wait(2). Returns true if it was the converter. */
bool output_conversion_reaped(struct output_conversion *c, int32_t pid, int status);

/*
 * Removes the temporary file, if it has not been renamed, and closes the descriptors. Safe after
 * a failed output_conversion_open().
 */
void output_conversion_close(struct output_conversion *c);

/*
 * Prints on standard error, after a local run, the command that shows the file or the envelopes
 * in the directory of --output.
 */
void output_conversion_print_viewer(const struct output_conversion *c, const struct output *o,
				    const struct options *options);

#endif
