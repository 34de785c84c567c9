/*
 * parse FILE...: parses the payloads of envelopes by jansson, one after the other. make bench
 * compares the cost of sentry-profctl convert with that of this program.
 */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"

/* Larger than every file that tests/bench/conversions.py makes. */
#define FILE_MAX (1u << 30)

/* Returns the payload, the third line; NULL if there is none. */
static const char *payload(const struct buf *file)
{
	const char *line = buf_string(file);

	for (int i = 0; i < 2 && line != NULL; i++) {
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	return line;
}

static int parse(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct buf file;
	json_t *v = NULL;

	buf_init(&file, FILE_MAX);
	if (fd >= 0 && buf_read_fd(&file, fd) == 0 && payload(&file) != NULL)
		v = json_loadb(payload(&file), file.len - (size_t)(payload(&file) - file.data), 0,
			       NULL);
	if (fd >= 0)
		(void)close(fd);
	if (v == NULL)
		(void)fprintf(stderr, "%s: no payload\n", path);
	buf_fini(&file);
	json_decref(v);
	return v == NULL ? -1 : 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (parse(argv[i]) < 0)
			return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
