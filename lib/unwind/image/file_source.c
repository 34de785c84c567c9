#include "lib/unwind/image/file_source.h"

uint32_t file_source_number(const struct file_source *s)
{
	return s->files->number ? s->files->number(s->ctx) : 0;
}

void file_source_mark(const struct file_source *s)
{
	reading_set(s->reading, file_source_number(s));
}

int file_source_open(const struct file_source *s, int *ret_fd)
{
	int fd = -1;
	int r;

	reading_set(s->reading, 0);
	r = s->files->image(s->ctx, s->start, s->end, &fd);
	if (r)
		return r;
	file_source_mark(s);
	*ret_fd = fd;
	return 0;
}
