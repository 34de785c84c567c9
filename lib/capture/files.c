#include "lib/capture/files.h"

#include <sys/syscall.h>

/* Which arguments are descriptors of what is moved. Returns their number. */
static unsigned int descriptors(long nr, unsigned int ret[FILES_MAX])
{
	ret[0] = 0;
	switch (nr) {
	case SYS_getrandom:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_io_uring_enter: /* may be registered, as a number */
		return 0;
	case SYS_sendfile:
		ret[1] = 1;
		return 2;
	case SYS_splice:
	case SYS_copy_file_range:
		ret[1] = 2;
		return 2;
	default:
		return 1;
	}
}

void files_find(uint32_t tid, const struct user_regs_struct *regs, long nr,
		struct files *ret)
{
	unsigned int which[FILES_MAX];

	ret->n = descriptors(nr, which);
	for (unsigned int i = 0; i < ret->n; i++)
		ret->file[i] =
			descriptor_file(tid, arch_argument(regs, which[i]));
}

static bool is_equal(const struct descriptor_file *a,
		     const struct descriptor_file *b)
{
	return a->major == b->major && a->minor == b->minor &&
	       a->inode == b->inode;
}

bool files_are_the_same(const struct files *files, uint32_t tid,
			const struct user_regs_struct *regs, long nr)
{
	struct files now;

	files_find(tid, regs, nr, &now);
	for (unsigned int i = 0; i < now.n; i++)
		if (!is_equal(&now.file[i], &files->file[i]))
			return false;
	return true;
}
