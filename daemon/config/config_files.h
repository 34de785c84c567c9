/*
 * Checks the files and directories that a configuration names: certificates and keys, the spool,
 * and the exe of each section. Used after config_resolve(), so that the user sees a fault before
 * the file is needed. Opens the files with the rights of this process, and changes nothing.
 */
#ifndef DAEMON_CONFIG_CONFIG_FILES_H
#define DAEMON_CONFIG_CONFIG_FILES_H

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"

enum config_occasion {
	CONFIG_AT_START,  /* checks certificates, keys and a configured spool */
	CONFIG_AT_RELOAD, /* certificates and keys. Faults are warnings: ship keeps the old files */
	CONFIG_AT_CHECK,  /* --check-config: also each exe, and for root the default spool */
};

/*
 * Checks the files for the occasion, and adds the faults. Faults of an exe, of the default spool,
 * and of certificates that the environment variable SSL_CERT_FILE names are always warnings. A
 * spool is checked only if there is a DSN.
 */
void config_files_check(const struct config *c, enum config_occasion occasion,
			struct config_faults *faults);

/*
 * Opens a file of certificates or a key with the rights of this process, for ship, which reads the
 * file by pread(2). The caller closes *ret_fd. Returns 0, or -errno if the file cannot be opened or
 * read (-EISDIR for a directory).
 */
must_check int config_files_open(const char *path, int *ret_fd);

#endif
