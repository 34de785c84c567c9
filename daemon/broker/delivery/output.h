/*
 * The directory that envelopes are written to (--output). The broker opens the files, with the
 * rights of the directory's owner, and passes them to ship. A file has a temporary name until it
 * is complete.
 */
#ifndef DAEMON_BROKER_DELIVERY_OUTPUT_H
#define DAEMON_BROKER_DELIVERY_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/util.h"

struct output {
	int dir_fd; /* -1: none */
	bool made;  /* the broker made the directory, and removes it if it stays empty */
	char path[PATH_MAX];
};

/*
 * Opens the directory path, or makes it, but not its parents. With NULL makes a new directory in
 * the current one. Checks that files can be made there. Returns 0 or -errno; after an error
 * o->dir_fd is -1.
 */
must_check int output_open(struct output *o, const char *path);
/*
 * Makes the new directory path with mode 0700, as the user of the calling process. Returns 0 or
 * -errno.
 */
must_check int output_open_private(struct output *o, const char *path);
/* Removes all files in the directory. */
void output_clear(const struct output *o);
/* Closes the directory, and removes it if the broker made it and it is empty. */
void output_close(struct output *o);

/*
 * Makes the file of envelope seq, open for writing, under its temporary name. *ret_fd is the
 * caller's. Returns 0 or -errno.
 */
must_check int output_create(const struct output *o, uint64_t seq, const char *chunk_id,
			     int *ret_fd);

/* Renames the file to its name, NNNNNN-CHUNKID.envelope, or removes it. Returns 0 or -errno. */
must_check int output_finish(const struct output *o, uint64_t seq, const char *chunk_id);
void output_remove(const struct output *o, uint64_t seq, const char *chunk_id);

/*
 * Rename or remove a file in a directory. If this process is root, with the rights of the
 * directory's owner. Returns 0 or -errno.
 */
must_check int output_rename_in(int dir_fd, const char *from, const char *to);
void output_unlink_in(int dir_fd, const char *name);

/*
 * Opens path for writing, and creates or empties it, with the rights of the calling process.
 * Returns 0 or -errno.
 */
must_check int output_open_file(const char *path, int *ret_fd);

#endif
