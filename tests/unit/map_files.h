/*
 * Finds out whether this process may open files by /proc/PID/map_files. That needs
 * CAP_CHECKPOINT_RESTORE, which ordinary users and most containers lack. Tests leave out what needs
 * map_files then.
 */
#ifndef TESTS_UNIT_MAP_FILES_H
#define TESTS_UNIT_MAP_FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

/* Returns true if the kernel refuses. */
static inline bool map_files_are_closed(void)
{
	unsigned long start = 0, end = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char path[96];
	struct stat st;
	int n = 0;

	if (maps != NULL) {
		n = fscanf(maps, "%lx-%lx", &start, &end);
		(void)fclose(maps);
	}
	(void)snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
	return n < 2 || stat(path, &st) < 0;
}

#endif
