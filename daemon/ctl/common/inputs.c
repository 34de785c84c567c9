#include "daemon/ctl/common/inputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/common/log.h"
#include "lib/base/buf.h"
#include "proto/import/page.h"
#include "proto/import/reader.h"

#define ENDING ".envelope"

struct files {
	inputs_file *read;
	void *ctx;
	bool goes_on;
};

struct chunks {
	inputs_chunk *add;
	void *ctx;
};

static int fail(const char *path, int error)
{
	log_error("cannot read %s: %s", path,
		  error == -E2BIG ? "more than 1 GiB" : strerror(-error));
	return error;
}

/* Reads the profile of a page (proto/import/page.h). */
static int read_page(const char *path, const char *bytes, size_t size, inputs_chunk *add, void *ctx)
{
	struct import_fault fault = {""};
	struct import_page *page = NULL;
	struct import_chunk chunk;
	int r = import_page_open(bytes, size, &page, &fault);

	while (r >= 0 && (r = import_page_next(page, &chunk, &fault)) == 1) {
		r = add(ctx, &chunk);
		import_chunk_fini(&chunk);
		if (r < 0)
			break;
	}
	import_page_free(page);
	if (r == -EBADMSG)
		log_error("%s %s", path, fault.text);
	else if (r < 0)
		return fail(path, r);
	return r;
}

int inputs_read_bytes(const char *path, const char *bytes, size_t size, inputs_chunk *add,
		      void *ctx)
{
	struct import_fault fault = {""};
	struct import_chunk chunk;
	struct import_reader text;
	int r;

	if (import_is_page(bytes, size))
		return read_page(path, bytes, size, add, ctx);
	import_reader_init(&text, bytes, size);
	while ((r = import_reader_next(&text, &chunk, &fault)) == 1) {
		r = add(ctx, &chunk);
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

static int read_chunks(void *ctx, const char *path, const char *bytes, size_t size)
{
	const struct chunks *chunks = ctx;

	return inputs_read_bytes(path, bytes, size, chunks->add, chunks->ctx);
}

/* name is relative to dir_fd; path is for messages. */
static int read_file(const struct files *files, int dir_fd, const char *name, const char *path)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct buf bytes;
	int r;

	if (fd < 0)
		return fail(path, -errno);
	buf_init(&bytes, INPUTS_FILE_MAX);
	r = buf_read_fd(&bytes, fd);
	close_fd(&fd);
	r = r < 0 ? fail(path, r) : files->read(files->ctx, path, buf_string(&bytes), bytes.len);
	buf_fini(&bytes);
	return r;
}

/* While sentry-profd still writes a file, its name begins with a dot. */
static int is_envelope(const struct dirent *entry)
{
	const size_t n = strlen(entry->d_name), length = strlen(ENDING);

	return entry->d_name[0] != '.' && n > length &&
	       strcmp(entry->d_name + n - length, ENDING) == 0;
}

static int read_directory(const struct files *files, const char *path)
{
	struct dirent **entries = NULL;
	int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = dir_fd < 0 ? -1 : scandirat(dir_fd, ".", &entries, is_envelope, alphasort);
	int r = n < 0 ? fail(path, -errno) : 0;

	for (int i = 0; i < n; i++) {
		char *full = NULL;
		int error = 0;

		if ((r == 0 || files->goes_on) &&
		    asprintf(&full, "%s/%s", path, entries[i]->d_name) < 0)
			error = fail(path, -ENOMEM);
		else if (full != NULL)
			error = read_file(files, dir_fd, entries[i]->d_name, full);
		r = r < 0 ? r : error;
		free(full);
		free(entries[i]);
	}
	free(entries);
	close_fd(&dir_fd);
	return r;
}

int inputs_each_file(char *const *paths, size_t n, bool goes_on, inputs_file *read, void *ctx)
{
	const struct files files = {read, ctx, goes_on};
	int r = 0;

	for (size_t i = 0; i < n && (r == 0 || goes_on); i++) {
		struct stat st;
		int error;

		if (stat(paths[i], &st) == 0 && S_ISDIR(st.st_mode))
			error = read_directory(&files, paths[i]);
		else
			error = read_file(&files, AT_FDCWD, paths[i], paths[i]);
		r = r < 0 ? r : error;
	}
	return r;
}

int inputs_read(char *const *paths, size_t n, inputs_chunk *add, void *ctx)
{
	struct chunks chunks = {add, ctx};

	return inputs_each_file(paths, n, false, read_chunks, &chunks);
}
