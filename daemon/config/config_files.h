/*
 * Checks the files and directories that a configuration names, after config_resolve(), before
 * ship or capture need them: certificates and keys, the spool, the exe of each section. Opens
 * them with the rights of this process, and changes nothing.
 */
#ifndef DAEMON_CONFIG_CONFIG_FILES_H
#define DAEMON_CONFIG_CONFIG_FILES_H

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"

enum config_occasion {
	CONFIG_AT_START,  /* the start of a daemon */
	CONFIG_AT_RELOAD, /* a reload; faults of certificates are warnings, the old ones stay */
	CONFIG_AT_CHECK,  /* --check-config, which also checks what a start reports by itself */
};

/* Adds faults. A fault of the file that SSL_CERT_FILE names is always a warning. */
void config_files_check(const struct config *c, enum config_occasion occasion,
			struct config_faults *faults);

/*
 * Opens a file of certificates or a key with the rights of this process, for ship, which
 * reads the file by pread(2). The caller closes *ret_fd. Returns 0, or -errno if the file cannot
 * be opened, or cannot be read (as a directory, -EISDIR).
 */
must_check int config_files_open(const char *path, int *ret_fd);

#endif
