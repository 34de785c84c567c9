#include "daemon/unwind/symbolize.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/msg/symbolized.h"
#include "daemon/unwind/request.h"
#include "lib/aggregate/lookup.h"
#include "lib/base/digits.h"
#include "lib/base/sealed.h"
#include "proto/debug_meta.h"

/* The address at which the file is mapped for the look-up. Address 0 would mean none. */
#define FILE_AT (UINT64_C(1) << 46)

/* Gives a copy of the descriptor of the file to look up, which ctx points to. */
static int give_file(void *ctx, uint64_t start, uint64_t end, int *ret_fd)
{
	const int *fd = ctx;

	(void)start;
	(void)end;
	*ret_fd = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
	return *ret_fd < 0 ? -errno : 0;
}

static int get_debug(void *ctx, const char *build_id, int *ret_fd)
{
	(void)ctx;
	return request_debug(0, build_id, ret_fd);
}

static int get_debug_link(void *ctx, uint64_t start, uint64_t end, const char *name, int *ret_fd)
{
	(void)ctx;
	return request_debug_link(0, start, end, name, ret_fd);
}

static bool has_nul(const char text[MSG_NAME_MAX])
{
	return memchr(text, '\0', MSG_NAME_MAX) != NULL;
}

static bool is_wanted(const struct msg_symbolize *m, const struct unwind_image *image)
{
	char id[2 * LOOKUP_ID_MAX + 1];

	if (image->id == NULL)
		return false;
	if (m->build_id[0] == '\0')
		return debug_meta_id(image->id, image->id_size, id) == 0 &&
		       strcmp(m->debug_id, id) == 0;
	digits_of_bytes(image->id, min_size(image->id_size, LOOKUP_ID_MAX), id);
	return image->has_build_id && strcmp(m->build_id, id) == 0;
}

/* Collects the functions at frame i of l, inlined ones first. */
static void collect(const struct lookup *l, size_t i, struct symbolized_pc *ret)
{
	const struct profile_lines *lines = &l->lines[i];

	ret->n = 0;
	for (uint32_t k = 0; k <= lines->n && k < UNWIND_LINES_MAX; k++) {
		const struct profile_frame *f =
			k < lines->n ? &l->inlined[lines->first + k] : &l->frames[i];

		ret->frames[ret->n++] = (struct symbolized_frame){f->function, f->file, f->line};
	}
}

static int look_up(struct unwind_space *space, const struct msg_symbolize *m, struct buf *answer,
		   enum symbolize_verdict *ret)
{
	struct stacks_frame frames[MSG_SYMBOLIZE_MAX];
	const struct stacks stacks = {.frames = frames, .n_frames = m->n};
	struct symbolized_pc pc;
	struct lookup l;
	int r;

	for (size_t i = 0; i < m->n; i++)
		frames[i] = (struct stacks_frame){
			.addr = FILE_AT + min_u64(m->offsets[i], FILE_AT - 1),
			.is_leaf = true,
		};
	lookup_init(&l, 0);
	l.demangle = m->demangle != 0;
	l.name_by_start = true;
	r = lookup_update(&l, &stacks, space, "");
	*ret = SYMBOLIZE_NO_NAMES;
	for (size_t i = 0; i < l.n_frames && r == 0; i++) {
		collect(&l, i, &pc);
		if (!l.details[i].unnamed || pc.frames[0].file != NULL)
			*ret = SYMBOLIZE_DONE;
		r = symbolized_add(answer, &pc);
	}
	lookup_fini(&l);
	return r;
}

static enum symbolize_verdict read_file(struct unwind_space *space, const struct msg_symbolize *m,
					struct buf *answer)
{
	enum symbolize_verdict verdict;
	struct unwind_image image;
	int r = unwind_space_set_file(space, m->name, FILE_AT);

	if (r < 0)
		return r == -ENOMEM ? SYMBOLIZE_NO_MEMORY : SYMBOLIZE_NOT_ELF;
	if (unwind_image_at(space, FILE_AT, &image) < 0)
		return SYMBOLIZE_NOT_ELF;
	if (!is_wanted(m, &image))
		return SYMBOLIZE_OTHER_ID;
	r = look_up(space, m, answer, &verdict);
	return r < 0 ? SYMBOLIZE_NO_MEMORY : verdict;
}

int symbolize(struct unwind_cache *cache, const struct msg_symbolize *m, int fd)
{
	static const struct unwind_files files = {
		.image = give_file,
		.debug = get_debug,
		.debug_link = get_debug_link,
		.number = NULL,
	};
	struct msg_symbolized done = {
		.h = MSG_HEADER(MSG_SYMBOLIZED),
	};
	struct unwind_space *space;
	struct buf answer;
	int answer_fd = -1, r;

	if (m->n == 0 || m->n > MSG_SYMBOLIZE_MAX || !has_nul(m->build_id) ||
	    !has_nul(m->debug_id) || !has_nul(m->name))
		return -EPROTO;
	r = unwind_space_new(cache, &files, &fd, &space);
	if (r < 0)
		return r;
	unwind_space_set_symbols(space, UNWIND_SYMBOLS_LINES);
	buf_init(&answer, SYMBOLIZED_BYTES_MAX);
	done.verdict = read_file(space, m, &answer);
	unwind_space_free(space);
	if (msg_symbolized_has_answer(done.verdict)) {
		done.size = answer.len;
		if (sealed_copy("symbols", answer.data, answer.len, &answer_fd) < 0)
			done.verdict = SYMBOLIZE_NO_MEMORY;
	}
	buf_fini(&answer);
	r = ipc_send(MSG_FD, &done, sizeof(done), &answer_fd, answer_fd >= 0 ? 1 : 0);
	close_fd(&answer_fd);
	return r;
}
