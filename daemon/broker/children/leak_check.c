#include "daemon/broker/children/leak_check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "daemon/process/process_root.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"

/* What a question does next. */
enum step {
	STEP_LIST,    /* request the list of files */
	STEP_FILE,    /* look up the next file in the cache, or request it */
	STEP_LOOK,    /* send the file to the unwind process */
	STEP_LOOKING, /* wait for its answer */
	STEP_OPTIONS, /* request the options of the process */
	STEP_WAIT,    /* wait for the helper */
	STEP_DONE,
};

struct leak_question {
	struct leak_question *next;
	struct leak_check *check;
	struct unwind *unwind;
	struct owner owner; /* OWNER_NONE: about a file */
	int pidfd;
	bool is_new_program;
	uint64_t deadline_ns; /* by clock_mono_ns() */
	enum step step;
	enum leak_answer answer;

	struct buf list; /* struct process_code_file, as the helper has sent them */
	size_t at, n;	 /* the file in work, and their number */
	int fd;		 /* the file in work; -1: not open */
	bool is_labeled; /* label and number are set */
	struct file_label label;
	uint32_t number;  /* for quarantine.h */
	uint32_t look;	  /* the id of its MSG_FILE_LOOK */
	int32_t look_pid; /* the unwind process that got it */

	enum file_leaks leaks; /* what was found */
	bool has_options;
	struct leak_options options;
};

void leak_check_init(struct leak_check *lc, struct files *files, struct quarantine *quarantine)
{
	lc->files = files;
	lc->quarantine = quarantine;
	if (getrandom(lc->key, sizeof(lc->key), 0) < 0)
		abort();
}

/* Returns the first of the places that the file can have. */
static struct leak_check_file *places_of(struct leak_check *lc, const struct owner_key *owner,
					 const struct file_identity *f)
{
	const uint64_t key[] = {siphash(lc->key, owner, sizeof(*owner)), f->device, f->inode,
				f->size, f->ctime_ns};
	const uint64_t hash = siphash(lc->key, key, sizeof(key));

	return &lc->cache[hash % (LEAK_CHECK_CACHED_MAX / LEAK_CHECK_PLACES) * LEAK_CHECK_PLACES];
}

/* Returns true if the cache has the file. */
static bool is_known(struct leak_check *lc, const struct owner_key *owner,
		     const struct file_identity *f, enum file_leaks *ret)
{
	const struct leak_check_file *c = places_of(lc, owner, f);

	for (size_t i = 0; i < LEAK_CHECK_PLACES; i++)
		if (c[i].is_set && owner_key_equal(&c[i].owner, owner) &&
		    file_identity_equal(&c[i].identity, f)) {
			*ret = c[i].leaks;
			return true;
		}
	return false;
}

static void remember(struct leak_check *lc, const struct owner_key *owner,
		     const struct file_identity *f, enum file_leaks leaks)
{
	struct leak_check_file *c = places_of(lc, owner, f);
	size_t i = 0;

	while (i < LEAK_CHECK_PLACES && c[i].is_set)
		i++;
	if (i == LEAK_CHECK_PLACES)
		i = lc->replaced++ % LEAK_CHECK_PLACES;
	c[i] = (struct leak_check_file){
		.is_set = true, .owner = *owner, .identity = *f, .leaks = leaks};
}

static void finish(struct leak_question *q, enum leak_answer answer)
{
	close_fd(&q->fd);
	q->step = STEP_DONE;
	q->answer = answer;
}

/* Answers by the options, which are known. */
static void finish_by_options(struct leak_question *q)
{
	if (q->leaks == FILE_LEAKS_NONE && (q->is_new_program || q->owner.kind == OWNER_NONE))
		q->leaks = q->options.preloads;
	if (q->leaks == FILE_LEAKS_NONE)
		finish(q, LEAK_ANSWER_NO);
	else if (leak_options_are_off(&q->options, q->leaks))
		finish(q, LEAK_ANSWER_OFF);
	else
		finish(q, q->leaks == FILE_LEAKS_ASAN ? LEAK_ANSWER_ASAN : LEAK_ANSWER_LSAN);
}

/* The search is over: no file is left, or one with LeakSanitizer was found. */
static void end_search(struct leak_question *q)
{
	close_fd(&q->fd);
	if (q->has_options)
		finish_by_options(q);
	else if (q->leaks != FILE_LEAKS_NONE || q->is_new_program)
		q->step = STEP_OPTIONS;
	else
		finish(q, LEAK_ANSWER_NO);
}

/* Takes what was found of the file in work. */
static void end_file(struct leak_question *q, enum file_leaks leaks)
{
	close_fd(&q->fd);
	q->is_labeled = false;
	q->leaks = leaks;
	q->at++;
	q->step = STEP_FILE;
	if (leaks != FILE_LEAKS_NONE)
		end_search(q);
}

static struct process_code_file file_in_work(const struct leak_question *q)
{
	struct process_code_file f;

	memcpy(&f, buf_string(&q->list) + q->at * sizeof(f), sizeof(f));
	return f;
}

/* Returns true for an error after which no other file of the process can be opened either. */
static bool ends_all(struct leak_question *q, int error)
{
	if (error == -ETIMEDOUT)
		finish(q, LEAK_ANSWER_HANGS);
	else if (error == -ESRCH || error == -EIO)
		finish(q, LEAK_ANSWER_UNKNOWN);
	return q->step == STEP_DONE;
}

static void go_on(struct leak_question *q);

/* A files_fn, as the next two. */
static void on_list(void *ctx, const struct msg_file_request *request, int error, int fd,
		    const struct file_label *file)
{
	struct leak_question *q = ctx;

	(void)request, (void)file;
	if (error == 0)
		error = buf_read_fd(&q->list, fd);
	close_fd(&fd);
	q->n = q->list.len / sizeof(struct process_code_file);
	q->step = STEP_FILE;
	if (error < 0 && !ends_all(q, error))
		finish(q, LEAK_ANSWER_UNKNOWN);
	go_on(q);
}

static void on_file(void *ctx, const struct msg_file_request *request, int error, int fd,
		    const struct file_label *file)
{
	struct leak_question *q = ctx;
	struct leak_check *lc = q->check;

	if (error == 0)
		error = quarantine_check_file(lc->quarantine, &q->unwind->key, request, file,
					      &q->number);
	if (error == 0) {
		q->fd = fd;
		q->label = *file;
		q->is_labeled = true;
		q->step = STEP_LOOK;
	} else {
		close_fd(&fd);
		if (!ends_all(q, error))
			end_file(q, FILE_LEAKS_NONE);
	}
	go_on(q);
}

static void on_options(void *ctx, const struct msg_file_request *request, int error, int fd,
		       const struct file_label *file)
{
	struct leak_question *q = ctx;

	(void)request, (void)file;
	if (error == 0 && read(fd, &q->options, sizeof(q->options)) != sizeof(q->options))
		error = -EIO;
	close_fd(&fd);
	/* An environment that cannot be read switches nothing off. */
	if (error < 0)
		q->options = (struct leak_options){.asan_off = false};
	q->has_options = true;
	if (error != -ESRCH)
		finish_by_options(q);
	else
		finish(q, LEAK_ANSWER_UNKNOWN);
}

static void request(struct leak_question *q, enum file_kind kind, uint64_t start, uint64_t end,
		    files_fn fn)
{
	const struct msg_file_request m = {.kind = kind, .start = start, .end = end};
	int r = files_request_own(q->check->files, &m, &q->owner, q->pidfd, fn, q);

	q->step = STEP_WAIT;
	if (r < 0)
		finish(q, LEAK_ANSWER_UNKNOWN);
}

/* Returns true if another question works at this file. Its answer will be in the cache. */
static bool is_in_work(const struct leak_question *q, const struct process_code_file *f)
{
	for (const struct leak_question *o = q->check->first; o != NULL; o = o->next) {
		struct process_code_file other;

		if (o == q || !owner_key_equal(&o->unwind->key, &q->unwind->key) || o->at >= o->n ||
		    (o->step != STEP_WAIT && o->step != STEP_LOOK && o->step != STEP_LOOKING))
			continue;
		other = file_in_work(o);
		if (file_identity_equal(&other.file, &f->file))
			return true;
	}
	return false;
}

/* Returns true if the question can go on at once. */
static bool next_file(struct leak_question *q)
{
	struct process_code_file f;
	enum file_leaks leaks;

	if (q->at >= q->n) {
		end_search(q);
		return q->step != STEP_DONE;
	}
	f = file_in_work(q);
	if (f.file.inode != 0 && is_known(q->check, &q->unwind->key, &f.file, &leaks)) {
		end_file(q, leaks);
		return q->step != STEP_DONE;
	}
	if (f.file.inode == 0 || !is_in_work(q, &f))
		request(q, FILE_KIND_CODE, f.start, f.end, on_file);
	return false;
}

static bool is_looking(const struct leak_check *lc, const struct unwind *u)
{
	for (const struct leak_question *q = lc->first; q != NULL; q = q->next)
		if (q->step == STEP_LOOKING && q->unwind == u)
			return true;
	return false;
}

/*
 * Sends the file. Each unwind process has one at a time, so that its answer finds room in the
 * socket. Returns true if the question can go on without: the cache has the file now, or unwind
 * processes have died at it.
 */
static bool send_look(struct leak_question *q)
{
	struct child *child = &q->unwind->child;
	struct msg_file_look m = {.h = MSG_HEADER(MSG_FILE_LOOK), .number = q->number};
	enum file_leaks leaks;

	if (q->is_labeled && is_known(q->check, &q->unwind->key, &q->label.identity, &leaks)) {
		end_file(q, leaks);
		return q->step != STEP_DONE;
	}
	if (q->number != 0 &&
	    quarantine_has(q->check->quarantine, &q->unwind->key, q->number, &q->label)) {
		end_file(q, FILE_LEAKS_NONE);
		return q->step != STEP_DONE;
	}
	if (child->fd < 0 || is_looking(q->check, q->unwind))
		return false;
	m.id = q->look = ++q->check->last_look;
	q->look_pid = child->pid;
	q->step = STEP_LOOKING;
	child_send(child, &m, sizeof(m), &q->fd, 1);
	return false;
}

/* Returns true if the unwind process has ended before it answered, perhaps at this file. */
static bool look_again(struct leak_question *q)
{
	const struct child *child = &q->unwind->child;

	if (child->pid == q->look_pid && child->fd >= 0)
		return false;
	q->step = STEP_LOOK;
	return true;
}

static void go_on(struct leak_question *q)
{
	bool can_go_on = true;

	while (can_go_on && q->step != STEP_DONE)
		switch (q->step) {
		case STEP_LIST:
			request(q, FILE_KIND_CODE_LIST, 0, 0, on_list);
			break;
		case STEP_FILE:
			can_go_on = next_file(q);
			break;
		case STEP_LOOK:
			can_go_on = send_look(q);
			break;
		case STEP_LOOKING:
			can_go_on = look_again(q);
			break;
		case STEP_OPTIONS:
			request(q, FILE_KIND_LEAK_OPTIONS, 0, 0, on_options);
			break;
		case STEP_WAIT:
		case STEP_DONE:
			can_go_on = false;
			break;
		}
}

static int new_question(struct leak_check *lc, struct unwind *u, uint64_t timeout_ns,
			struct leak_question **ret)
{
	struct leak_question *q = calloc(1, sizeof(*q)), **end = &lc->first;

	if (q == NULL)
		return -ENOMEM;
	q->check = lc;
	q->unwind = u;
	q->pidfd = q->fd = -1;
	q->deadline_ns = clock_mono_ns() + timeout_ns;
	buf_init(&q->list, PROCESS_MAPPED_FILES_MAX * sizeof(struct process_code_file));
	while (*end != NULL)
		end = &(*end)->next;
	*end = q;
	*ret = q;
	return 0;
}

int leak_check_process(struct leak_check *lc, struct unwind *u, const struct owner *owner,
		       int pidfd, bool is_new_program, uint64_t timeout_ns,
		       struct leak_question **ret)
{
	int r = new_question(lc, u, timeout_ns, ret);

	if (r < 0)
		return r;
	(*ret)->owner = *owner;
	(*ret)->pidfd = pidfd;
	(*ret)->is_new_program = is_new_program;
	(*ret)->step = STEP_LIST;
	return 0;
}

int leak_check_file(struct leak_check *lc, struct unwind *u, int fd,
		    const struct leak_options *options, uint64_t timeout_ns,
		    struct leak_question **ret)
{
	struct leak_question *q;
	int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0), r;

	if (fd >= 0 && copy < 0)
		return -errno;
	r = new_question(lc, u, timeout_ns, &q);
	if (r < 0) {
		close_fd(&copy);
		return r;
	}
	q->fd = copy;
	q->options = *options;
	q->has_options = true;
	q->step = copy >= 0 ? STEP_LOOK : STEP_FILE;
	*ret = q;
	return 0;
}

enum leak_answer leak_question_answer(const struct leak_question *q)
{
	return q->answer;
}

void leak_question_free(struct leak_question **q)
{
	struct leak_question **at;

	if (*q == NULL)
		return;
	at = &(*q)->check->first;
	while (*at != *q)
		at = &(*at)->next;
	*at = (*q)->next;
	files_forget((*q)->check->files, *q);
	close_fd(&(*q)->fd);
	buf_fini(&(*q)->list);
	free(*q);
	*q = NULL;
}

void leak_check_turn(struct leak_check *lc)
{
	const uint64_t now_ns = lc->first == NULL ? 0 : clock_mono_ns();
	size_t n = 0;

	for (struct leak_question *q = lc->first; q != NULL; q = q->next) {
		if (q->step == STEP_DONE)
			continue;
		if (n++ < LEAK_CHECK_ACTIVE_MAX)
			go_on(q);
		if (q->step != STEP_DONE && now_ns >= q->deadline_ns) {
			files_forget(lc->files, q);
			finish(q, LEAK_ANSWER_UNKNOWN);
		}
	}
}

int leak_check_seen(struct leak_check *lc, const struct unwind *u, const struct msg_file_seen *m)
{
	if (m->id == 0 || m->id > lc->last_look || m->leaks >= FILE_LEAKS_END)
		return -EPROTO;
	for (struct leak_question *q = lc->first; q != NULL; q = q->next) {
		if (q->step != STEP_LOOKING || q->look != m->id || q->unwind != u)
			continue;
		if (q->is_labeled)
			remember(lc, &u->key, &q->label.identity, (enum file_leaks)m->leaks);
		end_file(q, (enum file_leaks)m->leaks);
		go_on(q);
		break;
	}
	/* Others may wait for this file, or for the unwind process. */
	leak_check_turn(lc);
	return 0;
}
