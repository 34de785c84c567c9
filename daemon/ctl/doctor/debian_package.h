/*
 * Finds the Debian packages that own files, by dpkg-query(1), and names the packages with their
 * debug files. `doctor` names these packages for files that are stripped.
 *
 * The files are those of this process's root; the caller knows that a profiled process has the same
 * root. Paths may be hostile: they are arguments of dpkg-query after "--", and a path with a
 * character that is special in dpkg-query's patterns is left out.
 */
#ifndef DAEMON_CTL_DOCTOR_DEBIAN_PACKAGE_H
#define DAEMON_CTL_DOCTOR_DEBIAN_PACKAGE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"

#define DEBIAN_PACKAGE_QUERY "/usr/bin/dpkg-query"

/* dpkg-query takes tens of milliseconds. On a disk that hangs it may take for ever. */
#define DEBIAN_PACKAGE_LIMIT_NS (5 * NS_PER_SEC)

/* Names of packages have at most some 80 bytes; a longer one is cut. */
#define DEBIAN_PACKAGE_NAME_SIZE 128

struct debian_file {
	const char *path;			/* absolute */
	char package[DEBIAN_PACKAGE_NAME_SIZE]; /* "": unknown */
};

/*
 * Sets the packages of n files. program is DEBIAN_PACKAGE_QUERY, except in tests. After limit_ns
 * the program is killed; packages that it has not printed by then, and all packages if it cannot be
 * started, stay unknown.
 */
void debian_package_find(const char *program, uint64_t limit_ns, struct debian_file *files,
			 size_t n);

/* Writes the name of the package with the debug files of package: libc6-dbg, or NAME-dbgsym. */
void debian_package_debug(const char *package, char ret[DEBIAN_PACKAGE_NAME_SIZE]);

#endif
