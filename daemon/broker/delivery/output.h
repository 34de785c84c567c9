/*
 * The directory that envelopes are written to. The broker opens the files, with
 * the rights of the directory's owner, and hands them on; a file has a
 * temporary name until it is complete.
 */
#ifndef DAEMON_BROKER_DELIVERY_OUTPUT_H
#define DAEMON_BROKER_DELIVERY_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct output {
	int dir_fd; /* -1: none */
	bool made;  /* by us; taken away again if it stays empty */
	char path[PATH_MAX];
};

/*
 * Opens path, or makes it (not its parents) if it is not there; with NULL makes
 * a new directory in the current one. Tries whether files can be made there.
 * Returns 0 or -errno.
 */
must_check int output_open(struct output *o, const char *path);
/*
 * Makes the new directory path for this run alone: with the rights and the user
 * of the process that calls, who alone may look into it. Returns 0 or -errno.
 */
must_check int output_open_private(struct output *o, const char *path);
/* Removes all files in it. */
void output_clear(const struct output *o);
/* A directory that we made and that is empty goes as it came. */
void output_close(struct output *o);

/*
 * The file of envelope seq, open for writing under its temporary name. Returns
 * 0 or -errno.
 */
must_check int output_create(const struct output *o, uint64_t seq, const char *chunk_id,
			     int *ret_fd);

/* Gives it its name, NNNNNN-CHUNKID.envelope, or removes it. */
must_check int output_finish(const struct output *o, uint64_t seq, const char *chunk_id);
void output_remove(const struct output *o, uint64_t seq, const char *chunk_id);

/*
 * Renames or removes a file in a directory, with the rights of the directory's
 * owner where this process is root's.
 */
must_check int output_rename_in(int dir_fd, const char *from, const char *to);
void output_unlink_in(int dir_fd, const char *name);

/* A file to write to from its start; created as above. Returns 0 or -errno. */
must_check int output_open_file(const char *path, int *ret_fd);

#endif
