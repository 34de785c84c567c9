#include "lib/aggregate/names.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

const char *names_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* The kernel cuts a file's name, size bytes, off at COMM_SIZE - 1. */
static bool is_comm_of(const char *comm, const char *name, size_t size)
{
	size = min_size(size, COMM_SIZE - 1);
	return size > 0 && strlen(comm) == size && strncmp(comm, name, size) == 0;
}

static bool is_called(const char *comm, const char *argv0)
{
	size_t size = strcspn(argv0, " "), base = size;

	while (base > 0 && argv0[base - 1] != '/')
		base--;
	return is_comm_of(comm, argv0 + base, size - base);
}

void names_thread(const char *comm, size_t comm_size, bool is_main, const char *main_path,
		  const char *main_argv0, char out[THREAD_NAME_SIZE])
{
	const char *file = names_base(main_path);
	char text[COMM_SIZE + 1] = "";

	memcpy(text, comm, min_size(comm_size, COMM_SIZE));
	if (is_main && (is_comm_of(text, file, strlen(file)) || is_called(text, main_argv0)))
		memcpy(text, "main", sizeof("main"));
	utf8_clean(text, false, out, THREAD_NAME_SIZE);
}
