/*
 * The directory with a file for each envelope (--output), and other files that the broker writes
 * for the user. The broker makes an envelope's file under a temporary name, and passes it to a
 * ship, which writes it (delivery.h). A complete file has the name NNNNNN-CHUNKID.envelope, with
 * the number and the chunk id of the envelope.
 *
 * A broker that is root has dropped CAP_DAC_OVERRIDE, so it may lack access to a user's directory,
 * but it can change its user. Below, "as the owner" means two things:
 * - a broker that is root acts as the owner of the directory (daemon/process/act_as.h);
 * - any other broker uses its own rights.
 */
#ifndef DAEMON_BROKER_DELIVERY_OUTPUT_H
#define DAEMON_BROKER_DELIVERY_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct output {
	int dir_fd; /* -1: no directory, and no files are written */
	bool made;  /* the broker made the directory: output_close() removes it if it is empty */
	char path[PATH_MAX]; /* of the directory */
};

/*
 * Opens the directory path. If it does not exist, makes it as the owner of its parent, which has
 * to exist. If path is NULL, makes the directory sentry-profd-DATE-TIME in the current directory.
 * Checks that a file can be made in the directory. Returns 0 or -errno; after an error o->dir_fd
 * is -1, and a directory that was made is removed.
 */
must_check int output_open(struct output *o, const char *path);
/*
 * Makes the directory path with mode 0700, with the rights of the calling process, and opens it.
 * Returns 0; -EEXIST if path exists; or another negative errno. After an error o->dir_fd is -1, and
 * a directory that was made is removed.
 */
must_check int output_open_private(struct output *o, const char *path);
/*
 * Removes all files in the directory, as the owner. Call it only for a directory of
 * output_open_private(), which has no other files of the user. Ignores errors.
 */
void output_clear(const struct output *o);
/* Closes the directory, and removes it if the broker made it and it is empty. */
void output_close(struct output *o);

/*
 * Makes the file of envelope seq under its temporary name, as the owner, and opens it for writing.
 * Replaces a file of this name. chunk_id: 32 hexadecimal digits. *ret_fd is the caller's. The
 * caller then calls output_finish() or, if writing has failed, output_remove(). Returns 0 or
 * -errno.
 */
must_check int output_create(const struct output *o, uint64_t seq, const char *chunk_id,
			     int *ret_fd);

/*
 * Renames the file of output_create() to its final name, as the owner. Returns 0; or -errno, and
 * the file keeps its temporary name.
 */
must_check int output_finish(const struct output *o, uint64_t seq, const char *chunk_id);
/* Removes the file of output_create() by its temporary name, as the owner. Ignores errors. */
void output_remove(const struct output *o, uint64_t seq, const char *chunk_id);

/* Renames a file in the directory dir_fd, as the owner. Returns 0 or -errno. */
must_check int output_rename_in(int dir_fd, const char *from, const char *to);
/* Removes a file in the directory dir_fd, as the owner. Ignores errors. */
void output_unlink_in(int dir_fd, const char *name);

/*
 * Opens the file path for writing with the rights of the calling process (--stats). Creates the
 * file, or empties it. *ret_fd is the caller's. Returns 0 or -errno.
 */
must_check int output_open_file(const char *path, int *ret_fd);

#endif
