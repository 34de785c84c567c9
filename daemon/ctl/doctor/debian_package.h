/*
 * Finds the Debian package that owns a file, by dpkg-query(1), and the name of the package with the
 * debug files of that package. `doctor` recommends to install the debug package for stripped files.
 *
 * Paths are those of this process's root directory: the caller first makes sure that the profiled
 * process has the same root. Paths may be hostile. So dpkg-query gets them as arguments after "--".
 * dpkg-query would take a path with one of the characters *?[\ for a pattern. So dpkg-query does
 * not get such a path, and the package of the file is unknown.
 */
#ifndef DAEMON_CTL_DOCTOR_DEBIAN_PACKAGE_H
#define DAEMON_CTL_DOCTOR_DEBIAN_PACKAGE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/clock.h"

#define DEBIAN_PACKAGE_QUERY "/usr/bin/dpkg-query"

/* The usual time limit. dpkg-query takes tens of milliseconds; on a disk that hangs, for ever. */
#define DEBIAN_PACKAGE_LIMIT_NS (5 * NS_PER_SEC)

/* Names of packages have at most some 80 bytes; a longer one is cut. */
#define DEBIAN_PACKAGE_NAME_SIZE 128

struct debian_file {
	const char *path;			/* absolute */
	char package[DEBIAN_PACKAGE_NAME_SIZE]; /* without the architecture; "": unknown */
};

/*
 * Sets the member package of n files. program is DEBIAN_PACKAGE_QUERY, except in tests. After
 * limit_ns the program is killed, and each package that it has not printed by then is unknown. If
 * the program cannot be started, all packages are unknown.
 */
void debian_package_find(const char *program, uint64_t limit_ns, struct debian_file *files,
			 size_t n);

/*
 * Writes the name of the debug package of a package to ret: libc6-dbg for libc6, NAME-dbgsym for
 * each other NAME.
 */
void debian_package_debug(const char *package, char ret[DEBIAN_PACKAGE_NAME_SIZE]);

#endif
