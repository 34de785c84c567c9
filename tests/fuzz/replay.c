/*
 * main of a fuzz target where libFuzzer is not: runs the inputs that are given,
 * files or directories, without any those of tests/fuzz/corpus/NAME. Each also
 * cut off in places, in memory of exactly its size, so that AddressSanitizer
 * sees what is read behind the end. After the argument --whole no input is cut off.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/buf.h"

/* Inputs are small, so that a target's corpus takes a second. */
#define INPUT_BYTES_MAX (1u << 20)
#define CUTS		24

static size_t cuts = CUTS;

static void run(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size > 0 ? size : 1);

	if (!copy)
		abort();
	if (size > 0)
		memcpy(copy, bytes, size);
	(void)LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static bool run_file(const char *path, size_t *count)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf b;
	int r;

	buf_init(&b, INPUT_BYTES_MAX);
	r = fd < 0 ? -errno : buf_read_fd(&b, fd);
	close_fd(&fd);
	if (r == 0) {
		/* Said before: if it crashes it was this one. */
		(void)printf("%s\n", path);
		(void)fflush(stdout);
		for (size_t i = 0; i < cuts; i++)
			run((const void *)buf_string(&b), b.len * i / cuts);
		run((const void *)buf_string(&b), b.len);
		++*count;
	} else {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(-r));
	}
	buf_fini(&b);
	return r == 0;
}

static bool run_directory(const char *path, size_t *count)
{
	char name[PATH_MAX];
	struct dirent **v;
	bool good = true;
	int n = scandir(path, &v, NULL, alphasort);

	if (n < 0)
		return run_file(path, count);
	for (int i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "%s/%s", path, v[i]->d_name);
		if (v[i]->d_name[0] != '.')
			good &= run_file(name, count);
		free(v[i]);
	}
	free(v);
	return good;
}

int main(int argc, char **argv)
{
	char own[PATH_MAX];
	bool good = true;
	size_t count = 0;

	(void)snprintf(own, sizeof(own), "tests/fuzz/corpus/%s", basename(argv[0]));
	if (argc == 1)
		good = run_directory(own, &count);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--whole") == 0)
			cuts = 0;
		else
			good &= run_directory(argv[i], &count);
	}
	(void)printf("%zu inputs\n", count);
	return good && count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
