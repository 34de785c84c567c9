/*
 * Whether the kernel tells this process what is mapped (map_files): those of a
 * container, and users, it does not.
 */
#ifndef TESTS_UNIT_MAP_FILES_H
#define TESTS_UNIT_MAP_FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

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
