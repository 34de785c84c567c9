#include "daemon/ctl/inputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/log.h"
#include "lib/base/buf.h"
#include "proto/import/text.h"

#define ENDING ".envelope"

struct reader {
	inputs_chunk *add;
	void *ctx;
};

static int fail(const char *path, int error)
{
	log_error("%s: %s", path,
		  error == -E2BIG ? "more than 1 GiB" : strerror(-error));
	return error;
}

static int read_text(const struct reader *reader, const char *path,
		     const struct buf *bytes)
{
	struct import_fault fault = {""};
	struct import_chunk chunk;
	struct import_text text;
	int r;

	import_text_init(&text, buf_string(bytes), bytes->len);
	while ((r = import_text_next(&text, &chunk, &fault)) == 1) {
		r = reader->add(reader->ctx, &chunk);
		import_chunk_fini(&chunk);
		if (r < 0)
			break;
	}
	if (r == -EBADMSG)
		log_error("%s: %s", path, fault.text);
	else if (r < 0)
		return fail(path, r);
	return r;
}

/* name: below dir_fd. path: for the user. */
static int read_file(const struct reader *reader, int dir_fd, const char *name,
		     const char *path)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct buf bytes;
	int r;

	if (fd < 0)
		return fail(path, -errno);
	buf_init(&bytes, INPUTS_FILE_MAX);
	r = buf_read_fd(&bytes, fd);
	close_fd(&fd);
	r = r < 0 ? fail(path, r) : read_text(reader, path, &bytes);
	buf_fini(&bytes);
	return r;
}

/* A file that sentry-profd has not completed begins with a dot. */
static int is_envelope(const struct dirent *entry)
{
	const size_t n = strlen(entry->d_name), length = strlen(ENDING);

	return entry->d_name[0] != '.' && n > length &&
	       strcmp(entry->d_name + n - length, ENDING) == 0;
}

static int read_directory(const struct reader *reader, const char *path)
{
	struct dirent **entries = NULL;
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = dir_fd < 0 ? -1
			   : scandirat(dir_fd, ".", &entries, is_envelope,
				       alphasort);
	int r = n < 0 ? fail(path, -errno) : 0;

	for (int i = 0; i < n; i++) {
		char *full = NULL;

		if (r == 0 &&
		    asprintf(&full, "%s/%s", path, entries[i]->d_name) < 0)
			r = fail(path, -ENOMEM);
		else if (r == 0)
			r = read_file(reader, dir_fd, entries[i]->d_name, full);
		free(full);
		free(entries[i]);
	}
	free(entries);
	close_fd(&dir_fd);
	return r;
}

int inputs_read(char *const *paths, size_t n, inputs_chunk *add, void *ctx)
{
	const struct reader reader = {add, ctx};
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct stat st;

		if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			r = read_directory(&reader, paths[i]);
		else
			r = read_file(&reader, AT_FDCWD, paths[i], paths[i]);
	}
	return r;
}
