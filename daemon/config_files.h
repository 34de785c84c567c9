/*
 * The files and directories that a configuration names for ship: whether they
 * are what they shall be, before somebody needs them. It opens them with the
 * rights of who runs this, and changes nothing. Of a reload all that is wrong
 * with them are warnings.
 */
#ifndef DAEMON_CONFIG_FILES_H
#define DAEMON_CONFIG_FILES_H

#include "daemon/config.h"

enum config_occasion {
	CONFIG_STARTS,	   /* a daemon, with all the rights that it gets */
	CONFIG_RELOADS,	   /* one that runs, and has opened what it uses */
	CONFIG_IS_CHECKED, /* what a start tells by itself is told here */
};

/* After config_resolve. */
void config_files_check(const struct config *c, config_env_fn get,
			enum config_occasion occasion,
			struct config_faults *faults);

#endif
