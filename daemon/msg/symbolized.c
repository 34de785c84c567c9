#include "daemon/msg/symbolized.h"

#include <stdbool.h>
#include <string.h>

#include "lib/aggregate/names.h"
#include "lib/base/utf8.h"

/*
 * An address is the number of its frames, followed by the frames. A frame is this header,
 * followed by its two texts, NUL included; a size of 0 means NULL.
 */
struct frame_header {
	uint32_t line;
	uint32_t function_size, file_size;
};

static uint32_t size_of(const char *text)
{
	return text == NULL ? 0 : (uint32_t)strlen(text) + 1;
}

static int add_frame(struct buf *out, const struct symbolized_frame *frame)
{
	const struct frame_header h = {
		.line = frame->line,
		.function_size = size_of(frame->function),
		.file_size = size_of(frame->file),
	};
	int r = buf_add(out, &h, sizeof(h));

	if (r == 0 && h.function_size > 0)
		r = buf_add(out, frame->function, h.function_size);
	if (r == 0 && h.file_size > 0)
		r = buf_add(out, frame->file, h.file_size);
	return r;
}

int symbolized_add(struct buf *out, const struct symbolized_pc *pc)
{
	const uint32_t n = (uint32_t)pc->n;
	int r = buf_add(out, &n, sizeof(n));

	for (size_t i = 0; i < pc->n && r == 0; i++)
		r = add_frame(out, &pc->frames[i]);
	return r;
}

static bool take(struct symbolized_cursor *c, void *ret, size_t size)
{
	if (size > c->left)
		return false;
	memcpy(ret, c->at, size);
	c->at += size;
	c->left -= size;
	return true;
}

/* Sets *ret to NULL if size is 0. */
static bool take_text(struct symbolized_cursor *c, uint32_t size, const char **ret)
{
	const char *text = (const char *)c->at;
	char clean[NAME_SIZE];

	*ret = NULL;
	if (size == 0)
		return true;
	if (size == 1 || size > c->left || size > NAME_SIZE ||
	    memchr(text, '\0', size) != text + size - 1)
		return false;
	utf8_clean(text, true, clean, sizeof(clean));
	if (strcmp(clean, text) != 0)
		return false;
	*ret = text;
	c->at += size;
	c->left -= size;
	return true;
}

static bool take_frame(struct symbolized_cursor *c, struct symbolized_frame *ret)
{
	struct frame_header h;

	if (!take(c, &h, sizeof(h)) || h.line > INT32_MAX ||
	    !take_text(c, h.function_size, &ret->function) ||
	    !take_text(c, h.file_size, &ret->file))
		return false;
	ret->line = h.line;
	return true;
}

int symbolized_next(struct symbolized_cursor *c, struct symbolized_pc *ret)
{
	uint32_t n;

	if (!take(c, &n, sizeof(n)) || n == 0 || n > UNWIND_LINES_MAX)
		return -EBADMSG;
	ret->n = n;
	for (size_t i = 0; i < ret->n; i++) {
		if (!take_frame(c, &ret->frames[i]))
			return -EBADMSG;
		if (i + 1 < ret->n && ret->frames[i].function == NULL)
			return -EBADMSG;
	}
	return 0;
}
