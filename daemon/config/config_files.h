/*
 * The files and directories that a configuration names for ship: whether they
 * are what they shall be, before somebody needs them. It opens them with the
 * rights of who runs this, and changes nothing. Of a reload all that is wrong
 * with them are warnings, as is all that is wrong with the file that
 * SSL_CERT_FILE names.
 */
#ifndef DAEMON_CONFIG_CONFIG_FILES_H
#define DAEMON_CONFIG_CONFIG_FILES_H

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"

enum config_occasion {
	CONFIG_STARTS,	   /* a daemon, with all the rights that it gets */
	CONFIG_RELOADS,	   /* one that runs, and has opened what it uses */
	CONFIG_IS_CHECKED, /* what a start tells by itself is told here */
};

/* After config_resolve. */
void config_files_check(const struct config *c, enum config_occasion occasion,
			struct config_faults *faults);

/*
 * Opens a file of certificates or a key with the rights of this process, for
 * ship, which reads it by pread(2). Returns 0, or -errno where it cannot be
 * opened or be read so, as a directory.
 */
must_check int config_files_open(const char *path, int *ret_fd);

#endif
