/*
 * Which file was an unwind process at when it died? It says so in a page, by
 * the number that it was given with the file: a hash of the file's identity
 * under a key of the broker's. So it can have files left out that it was given
 * itself, and no others, for the targets of its own user (daemon/broker/files/deadly.h).
 */
#include "daemon/broker/files/blame.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "daemon/broker/broker.h"
#include "daemon/common/log.h"
#include "daemon/msg/page.h"

int blame_begin(struct unwind *u, int *ret_fd)
{
	const void *page;
	int r = page_new("reading", sizeof(*u->reading), &page, ret_fd);

	if (r < 0)
		return r;
	blame_end(u);
	u->reading = page;
	return 0;
}

void blame_end(struct unwind *u)
{
	page_free(u->reading, sizeof(*u->reading));
	u->reading = NULL;
}

/*
 * What a process does to itself when it reads what it should not: by a fault,
 * by the end of its time (SIGXCPU, daemon/unwind/leash.h), or of its memory, for which
 * libraries have exit(3). Not SIGKILL and what else others have sent: the
 * kernel for want of memory, an administrator, or the broker. The status alone
 * says so: a process that broke a rule before it crashed, and that the broker
 * would have killed, has crashed.
 */
static bool is_own_fault(int status)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS, SIGXCPU};

	if (WIFEXITED(status))
		return WEXITSTATUS(status) != 0;
	for (size_t i = 0; i < array_size(signals); i++)
		if (WIFSIGNALED(status) && WTERMSIG(status) == signals[i])
			return true;
	return false;
}

static void tell(const struct broker *b, uint32_t uid, uint32_t number)
{
	const struct deadly_file *f = NULL;

	while ((f = deadly_next(b->deadly, f)) != NULL)
		if (f->uid == uid && f->number == number)
			log_warning("sentry-profd-unwind has died %u times at "
				    "%s: this file is not read any more for "
				    "processes of uid %u",
				    DEADLY_DEATHS, f->file.name, uid);
}

void blame_died(struct broker *b, struct unwind *u, int status)
{
	uint32_t number;

	if (u->reading == NULL || !is_own_fault(status))
		return;
	number = __atomic_load_n(u->reading, __ATOMIC_RELAXED);
	if (number == 0)
		return;
	if (b->deadly == NULL)
		b->deadly = calloc(1, sizeof(*b->deadly));
	/* Without memory the file has another chance. */
	if (b->deadly != NULL && deadly_count(b->deadly, u->uid, number))
		tell(b, u->uid, number);
}

/* Those are compiled; others are texts, which have no number. */
static bool is_image(const struct msg_file_request *request)
{
	return request->kind == FILE_KIND_IMAGE || request->kind == FILE_KIND_DEBUG ||
	       request->kind == FILE_KIND_DEBUG_LINK;
}

int blame_hand(struct broker *b, const struct unwind *u, const struct msg_file_request *request,
	       const struct file_shown *file, uint32_t *ret_number)
{
	uint32_t number = 0;

	if (is_image(request))
		number = (uint32_t)siphash(b->files_key, &file->identity, sizeof(file->identity));
	if (number != 0 && b->deadly != NULL && deadly_is_left_out(b->deadly, u->uid, number, file))
		return -EACCES;
	*ret_number = number;
	return 0;
}
