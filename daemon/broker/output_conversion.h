/*
 * --output FILE: one file in a format of sentry-profctl convert, with the profile of a whole run.
 *
 * A run here is the time from the start of sentry-profd to its end:
 * - At the start the broker makes the file, under a temporary name and with the rights of the user
 *   who started sentry-profd, and a private directory beside it.
 * - During the run the envelopes are written into the directory.
 * - At the end, if there is an envelope, the broker starts sentry-profctl as a process of that
 *   user, without capabilities and without the right to open files for writing. sentry-profctl
 *   reads the envelopes and writes to the descriptor of the file. This is called the conversion.
 * - If the conversion succeeds, the file gets its name, and the directory is removed. If it fails,
 *   the directory stays, a log line names it, and the temporary file is removed.
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
	int exe_fd;		      /* the executable sentry-profctl; -1: no --output FILE */
	int dir_fd;		      /* the directory of the file */
	int fd;			      /* the file; -1: not open, or complete */
	char temporary[NAME_MAX + 1]; /* the temporary name of the file in dir_fd */
	const char *name;	      /* the final name of the file in dir_fd */
	int32_t pid;		      /* of sentry-profctl; 0: not running */
	int status;		      /* as of wait(2), when sentry-profctl has ended */
	bool is_made;		      /* the file is complete and has its name */
};

/*
 * Finds sentry-profctl, opens the file under its temporary name, and makes the directory of
 * envelopes, *ret_output, which the caller closes (output_close). Call it before the broker drops
 * its privileges. path must stay valid as long as *c. Returns 0; or -errno, with one log line.
 */
must_check int output_conversion_open(struct output_conversion *c, const char *path,
				      struct output *ret_output);

/*
 * Starts the conversion. Call it when all envelopes are written into o. format is the name of a
 * format of sentry-profctl convert. nice_steps: by how much the broker has lowered its nice value;
 * sentry-profctl gets the nice value from before. c->pid stays set until output_conversion_reaped()
 * has recorded the end. Returns 0 or -errno.
 */
must_check int output_conversion_start(struct output_conversion *c, const struct output *o,
				       uint32_t nice_steps, const char *format);
/* Kills sentry-profctl, if it runs. */
void output_conversion_stop(const struct output_conversion *c);
/*
 * To be called when the conversion has ended, or when output_conversion_start() has failed. If the
 * conversion succeeded, gives the file its name and removes the envelopes. Else logs a line with
 * the reason and the directory of the envelopes.
 *
 * path: as for output_conversion_open(). error: what output_conversion_start() returned.
 * was_interrupted: a signal asked the broker to end during the conversion. If sentry-profctl was
 * killed then, the line gives "a signal ended the conversion" as the reason.
 */
void output_conversion_finish(struct output_conversion *c, const struct output *o, const char *path,
			      int error, bool was_interrupted);

/*
 * To be called when child process pid has ended, with this status of wait(2). Returns true if the
 * process was the sentry-profctl of output_conversion_start().
 */
bool output_conversion_reaped(struct output_conversion *c, int32_t pid, int status);

/*
 * Removes the temporary file, if it has not been renamed, and closes the descriptors. Safe after
 * a failed output_conversion_open().
 */
void output_conversion_close(struct output_conversion *c);

/*
 * Prints on standard error the command that shows the file or, with --output DIRECTORY, the
 * envelopes in it. Prints nothing if the conversion has failed or its format has no viewer.
 */
void output_conversion_print_viewer(const struct output_conversion *c, const struct output *o,
				    const struct options *options);

#endif
