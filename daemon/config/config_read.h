/*
 * Reads the files of a configuration: a main file, and the files whose names end with .conf in the
 * directory targets.d beside it, in the order of their names. A daemon reads them at its start and
 * at each reload.
 */
#ifndef DAEMON_CONFIG_CONFIG_READ_H
#define DAEMON_CONFIG_CONFIG_READ_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/config/config.h"
#include "daemon/config/config_fault.h"
#include "lib/base/util.h"

/* The largest file, in bytes. Each section may have a file of its own. */
#define CONFIG_FILE_BYTES_MAX (1u << 20)

/* The longest line, in bytes, without its end and the blanks around it. */
#define CONFIG_LINE_MAX (1u << 16)

/*
 * Calls config_init(ret), and reads the main file at path and, if it exists, the directory
 * targets.d beside it. Returns 0, or -EINVAL if it has added faults that are errors, such as a
 * missing main file. After -EINVAL *ret must not become the daemon's configuration; the caller may
 * still pass it to functions that find further faults, such as config_resolve(). The caller calls
 * config_fini(ret) in any case.
 */
must_check int config_load(const char *path, struct config *ret, struct config_faults *faults);

/* Where a file is. A file of targets.d must have no section [profiler]. */
enum config_place { CONFIG_MAIN, CONFIG_TARGETS_D };

/* The text of one file. */
struct config_text {
	const char *name; /* for faults */
	enum config_place place;
	const char *bytes; /* the content, size bytes */
	size_t size;
	uint32_t mode, uid; /* of the file, for config_check_mode() */
};

/* Reads the text of one file into c, and adds its faults. config_load() calls it for each file. */
void config_read_text(struct config *c, const struct config_text *text,
		      struct config_faults *faults);

#endif
