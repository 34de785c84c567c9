/*
 * The faults of a configuration: collected while files, options and environment are read,
 * kept in order, and logged together, so that a user sees all of them at once.
 *
 * Faults are ordered by file and line. Faults of the command line and of the environment come
 * first. The text of a fault is logged. So the caller that adds a fault must not put a DSN, or the
 * content of a file with a DSN, into the text.
 */
#ifndef DAEMON_CONFIG_CONFIG_FAULT_H
#define DAEMON_CONFIG_CONFIG_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "lib/base/util.h"

/*
 * The most faults that are kept. A further error takes the place of the last warning; if all are
 * errors, it is counted. Further warnings are dropped.
 */
#define CONFIG_FAULTS_MAX 100

/* An error or a warning. A configuration with an error must not be used. */
struct config_fault {
	char *text; /* "FILE:LINE: problem", "--rate: problem" */
	bool is_warning;
	uint32_t file, line; /* as in struct config_origin */
};

/* All zeros: no faults. */
struct config_faults {
	struct config_fault v[CONFIG_FAULTS_MAX];
	size_t n;
	size_t n_errors; /* all errors, also those whose text is not kept; without warnings */
	/*
	 * true: the configuration is only checked (--check-config). The caller sets is_check before
	 * config_load(). At some faults a daemon only warns, and starts without a part of the
	 * configuration. The code that finds such a fault passes is_warning = !is_check to
	 * config_fault_add(), so that the check reports an error.
	 */
	bool is_check;
};

/*
 * Adds a fault of the value, section or file at *origin. Copies the text and *origin. c has the
 * names of the files; it may be NULL if origin has no file. If memory is short, an error is counted
 * and its text is not kept; a warning is dropped.
 */
void config_fault_add(struct config_faults *f, const struct config *c,
		      const struct config_origin *origin, bool is_warning, const char *format, ...)
	printf_like(5, 6);

/*
 * Logs all faults in their order, then the number of errors without a text, and calls
 * config_faults_fini().
 */
void config_faults_log(struct config_faults *f);
/* Frees the faults, and sets *f to zeros. */
void config_faults_fini(struct config_faults *f);

#endif
