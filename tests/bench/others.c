#include "tests/bench/others.h"

#include <elfutils/libdwfl.h>
#include <libunwind-ptrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "lib/base/util.h"

/* The registers by their DWARF numbers, which libunwind uses, too; the last is the pc. */
#define N_REGS (SAMPLE_X86_64_RIP + 1)

#define FRAMES_MAX 512
/* Longer names of C++ are cut, after libunwind has read them whole. */
#define NAME_BYTES 1024

static struct {
	pid_t pid;
	unw_addr_space_t space, live_space;
	void *upt, *live_upt;
	Dwfl *dwfl;
	const struct record_sample *sample; /* the sample that is being walked */
} me;

static _Noreturn void fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "%s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static bool read_stack(uint64_t addr, uint64_t *ret)
{
	const uint64_t at = addr - me.sample->stack_addr;

	if (addr < me.sample->stack_addr || me.sample->stack_size < 8 ||
	    at > me.sample->stack_size - 8)
		return false;
	memcpy(ret, me.sample->stack + at, 8);
	return true;
}

/* Reads a word of the stack from the record, and any other from the process: mapped files have not
 * changed since. */
static int access_mem(unw_addr_space_t space, unw_word_t addr, unw_word_t *word, int write,
		      void *arg)
{
	struct iovec local = {word, sizeof(*word)};
	struct iovec remote = {(void *)(uintptr_t)addr, sizeof(*word)};

	(void)space, (void)arg;
	if (write)
		return -UNW_EINVAL;
	if (read_stack(addr, word))
		return 0;
	return process_vm_readv(me.pid, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(*word)
		       ? 0
		       : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *word, int write,
		      void *arg)
{
	(void)space, (void)arg;
	if (write || reg < 0 || reg >= N_REGS)
		return -UNW_EBADREG;
	*word = me.sample->regs[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write,
			void *arg)
{
	(void)space, (void)reg, (void)value, (void)write, (void)arg;
	return -UNW_EBADREG;
}

/* Unless ret_named is NULL, also looks up names and adds the number of frames with a name to it. */
static size_t walk_libunwind(unw_addr_space_t space, void *upt, uint64_t *ret, size_t max,
			     size_t *ret_named)
{
	char name[NAME_BYTES];
	unw_cursor_t cursor;
	size_t n = 0;
	int r;

	r = unw_init_remote(&cursor, space, upt);
	if (r < 0)
		fail("unw_init_remote", unw_strerror(r));
	do {
		unw_word_t pc, offset;

		r = unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (r < 0 || pc == 0)
			break;
		ret[n++] = pc;
		if (ret_named != NULL)
			*ret_named += unw_get_proc_name(&cursor, name, sizeof(name), &offset) == 0;
	} while (n < max && unw_step(&cursor) > 0);
	return n;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **ret)
{
	/* There is one thread. */
	if (*ret != NULL)
		return 0;
	(void)dwfl;
	*ret = arg;
	return me.pid;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *ret, void *arg)
{
	(void)dwfl, (void)arg;
	return read_stack(addr, ret);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	(void)arg;
	dwfl_thread_state_register_pc(thread, me.sample->regs[SAMPLE_X86_64_RIP]);
	return dwfl_thread_state_registers(thread, 0, N_REGS, me.sample->regs);
}

/* Finds no separate debug file: CFI is in the mapped files. */
static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			const char *file_name, const char *debuglink, GElf_Word crc,
			char **ret_name)
{
	(void)module, (void)userdata, (void)name, (void)base;
	(void)file_name, (void)debuglink, (void)crc, (void)ret_name;
	return -1;
}

struct frames {
	uint64_t *addrs;
	size_t n, max;
};

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct frames *f = arg;
	Dwarf_Addr pc;

	if (f->n == f->max || !dwfl_frame_pc(frame, &pc, NULL) || pc == 0)
		return DWARF_CB_ABORT;
	f->addrs[f->n++] = pc;
	return DWARF_CB_OK;
}

static int walk_thread(Dwfl_Thread *thread, void *arg)
{
	(void)dwfl_thread_getframes(thread, add_frame, arg);
	return DWARF_CB_ABORT;
}

static size_t walk_libdwfl(uint64_t *ret, size_t max)
{
	struct frames f = {.addrs = ret, .max = max};

	(void)dwfl_getthreads(me.dwfl, walk_thread, &f);
	return f.n;
}

static void open_libdwfl(void)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = no_debuginfo,
	};
	static const Dwfl_Thread_Callbacks thread_callbacks = {
		.next_thread = next_thread,
		.memory_read = memory_read,
		.set_initial_registers = set_registers,
	};

	me.dwfl = dwfl_begin(&callbacks);
	if (me.dwfl == NULL || dwfl_linux_proc_report(me.dwfl, me.pid) != 0 ||
	    dwfl_report_end(me.dwfl, NULL, NULL) != 0 ||
	    !dwfl_attach_state(me.dwfl, NULL, me.pid, &thread_callbacks, &me))
		fail("libdwfl", dwfl_errmsg(-1));
}

static void open_libunwind(pid_t tid, unw_accessors_t *accessors, unw_addr_space_t *ret_space,
			   void **ret_upt)
{
	*ret_space = unw_create_addr_space(accessors, 0);
	*ret_upt = _UPT_create(tid);
	if (*ret_space == NULL || *ret_upt == NULL)
		fail("libunwind", "no memory");
	(void)unw_set_caching_policy(*ret_space, UNW_CACHE_GLOBAL);
}

static void stop(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 || waitpid(tid, &status, __WALL) != tid ||
	    !WIFSTOPPED(status))
		fail("stop", strerror(errno));
}

static void open_recorded(pid_t pid)
{
	static unw_accessors_t accessors;

	accessors = _UPT_accessors;
	accessors.access_mem = access_mem;
	accessors.access_reg = access_reg;
	accessors.access_fpreg = access_fpreg;
	open_libunwind(pid, &accessors, &me.space, &me.upt);
}

void others_open_one(enum other other, pid_t pid)
{
	me.pid = pid;
	switch (other) {
	case OTHER_LIBUNWIND:
		open_recorded(pid);
		break;
	case OTHER_LIBDWFL:
		open_libdwfl();
		break;
	case OTHER_PTRACE:
	case OTHER_N:
		break;
	}
}

void others_close_one(enum other other)
{
	switch (other) {
	case OTHER_LIBUNWIND:
		_UPT_destroy(me.upt);
		unw_destroy_addr_space(me.space);
		break;
	case OTHER_LIBDWFL:
		dwfl_end(me.dwfl);
		break;
	case OTHER_PTRACE:
	case OTHER_N:
		break;
	}
}

void others_open(pid_t pid, pid_t tid)
{
	others_open_one(OTHER_LIBUNWIND, pid);
	others_open_one(OTHER_LIBDWFL, pid);
	open_libunwind(tid, &_UPT_accessors, &me.live_space, &me.live_upt);
	stop(tid);
}

size_t others_walk(enum other other, const struct record_sample *sample, uint64_t *ret, size_t max)
{
	me.sample = sample;
	switch (other) {
	case OTHER_LIBUNWIND:
		return walk_libunwind(me.space, me.upt, ret, max, NULL);
	case OTHER_LIBDWFL:
		return walk_libdwfl(ret, max);
	case OTHER_PTRACE:
		return walk_libunwind(me.live_space, me.live_upt, ret, max, NULL);
	case OTHER_N:
		break;
	}
	return 0;
}

static size_t name_by_libdwfl(size_t max)
{
	uint64_t addrs[FRAMES_MAX];
	const size_t n = walk_libdwfl(addrs, min_u64(max, FRAMES_MAX));
	size_t named = 0;

	for (size_t i = 0; i < n; i++) {
		const uint64_t addr = addrs[i] - (i > 0);
		Dwfl_Module *module = dwfl_addrmodule(me.dwfl, addr);

		named += module != NULL && dwfl_module_addrname(module, addr) != NULL;
	}
	return named;
}

size_t others_name(enum other other, const struct record_sample *sample, size_t max)
{
	uint64_t addrs[FRAMES_MAX];
	size_t named = 0;

	me.sample = sample;
	switch (other) {
	case OTHER_LIBUNWIND:
		(void)walk_libunwind(me.space, me.upt, addrs, min_u64(max, FRAMES_MAX), &named);
		return named;
	case OTHER_LIBDWFL:
		return name_by_libdwfl(max);
	case OTHER_PTRACE:
	case OTHER_N:
		break;
	}
	return 0;
}
