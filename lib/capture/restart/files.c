#include "lib/capture/restart/files.h"

#include "lib/capture/restart/syscalls.h"

void files_find(uint32_t tid, const struct user_regs_struct *regs, long nr, struct files *ret)
{
	const unsigned int which = syscall_rule(nr)->descriptors;

	ret->n = 0;
	for (unsigned int i = 0; i < ARCH_ARGUMENTS && ret->n < FILES_MAX; i++)
		if ((which & 1u << i) != 0)
			ret->file[ret->n++] = descriptor_file(tid, arch_argument(regs, i));
}

static bool is_equal(const struct descriptor_file *a, const struct descriptor_file *b)
{
	return a->major == b->major && a->minor == b->minor && a->inode == b->inode;
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
