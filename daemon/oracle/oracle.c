#include "daemon/oracle/oracle.h"

#include <elfutils/libdwfl.h>
#include <libunwind-ptrace.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "lib/capture/ptrace/arch.h"

struct oracle {
	enum oracle_kind kind;
	int32_t pid;
	unw_addr_space_t space;
	Dwfl *dwfl; /* NULL until the first walk */
};

const char *oracle_name(enum oracle_kind kind)
{
	return kind == ORACLE_LIBUNWIND ? "libunwind" : "libdwfl";
}

/*
 * Removes the signature that an aarch64 processor has put into the upper 16 bits of a return
 * address (pointer authentication), which libunwind 1.6 and libdwfl 0.188 leave there. Both get
 * each register and each word of memory by this function, and do not say which one is a return
 * address; libunwind reads CFI by it, too. So only a word changes that is signed, and an address of
 * a program or a library without that. Bit 55 of a signed address of user space is 0.
 */
static uint64_t without_signature(uint64_t word)
{
#if defined(__aarch64__)
	const uint64_t address = word & ((UINT64_C(1) << 48) - 1);
	const uint64_t region = address >> 32;

	if (word != address && (word >> 55 & 1) == 0 &&
	    (region == 0 || region >> 4 == 0xaaa || region >> 4 == 0xfff))
		return address;
#endif
	return word;
}

static int read_word(unw_addr_space_t space, unw_word_t addr, unw_word_t *word, int write,
		     void *accessor)
{
	int r = _UPT_access_mem(space, addr, word, write, accessor);

	if (r == 0 && !write)
		*word = without_signature(*word);
	return r;
}

static int read_register(unw_addr_space_t space, unw_regnum_t number, unw_word_t *word, int write,
			 void *accessor)
{
	int r = _UPT_access_reg(space, number, word, write, accessor);

	if (r == 0 && !write)
		*word = without_signature(*word);
	return r;
}

static unw_addr_space_t make_space(void)
{
	unw_accessors_t accessors = _UPT_accessors;

	accessors.access_mem = read_word;
	accessors.access_reg = read_register;
	return unw_create_addr_space(&accessors, 0);
}

int oracle_new(enum oracle_kind kind, int32_t pid, struct oracle **ret)
{
	struct oracle *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return -ENOMEM;
	o->kind = kind;
	o->pid = pid;
	if (kind == ORACLE_LIBUNWIND) {
		o->space = make_space();
		if (o->space == NULL) {
			free(o);
			return -ENOMEM;
		}
		(void)unw_set_caching_policy(o->space, UNW_CACHE_GLOBAL);
	}
	*ret = o;
	return 0;
}

void oracle_forget(struct oracle *o)
{
	if (o == NULL)
		return;
	if (o->space != NULL)
		unw_flush_cache(o->space, 0, 0);
	if (o->dwfl != NULL)
		dwfl_end(o->dwfl);
	o->dwfl = NULL;
}

void oracle_free(struct oracle *o)
{
	if (o == NULL)
		return;
	oracle_forget(o);
	if (o->space != NULL)
		unw_destroy_addr_space(o->space);
	free(o);
}

static void walk_libunwind(struct oracle *o, int32_t tid, struct oracle_stack *ret)
{
	void *accessor = _UPT_create(tid);
	unw_cursor_t cursor;
	unw_word_t pc;
	int r = -UNW_ENOMEM;

	if (accessor != NULL)
		r = unw_init_remote(&cursor, o->space, accessor);
	if (r == 0)
		r = 1;
	while (r > 0 && ret->n < UNWIND_FRAMES_MAX) {
		r = unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (r < 0 || (pc == 0 && ret->n > 0))
			break;
		/* True of the interrupted frame; before it is the trampoline */
		ret->addrs[ret->n] = pc;
		if (ret->n > 0 && unw_is_signal_frame(&cursor) > 0) {
			ret->addrs[ret->n] = unwind_after_call(pc);
			if (ret->n > 1)
				ret->addrs[ret->n - 1] = unwind_after_call(ret->addrs[ret->n - 1]);
		}
		ret->n++;
		r = unw_step(&cursor);
	}
	ret->end = r < 0 ? unw_strerror(r) : "end";
	if (accessor != NULL)
		_UPT_destroy(accessor);
}

static int add_dwfl_frame(Dwfl_Frame *frame, void *arg)
{
	struct oracle_stack *s = arg;
	Dwarf_Addr pc;
	bool is_activation;

	if (!dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	/* libdwfl continues beyond a frame whose pc is 0. */
	if (s->n == UNWIND_FRAMES_MAX || (s->n > 0 && pc == 0))
		return DWARF_CB_ABORT;
	s->addrs[s->n] = s->n > 0 && is_activation ? unwind_after_call(pc) : pc;
	s->n++;
	return DWARF_CB_OK;
}

/*
 * Tells libdwfl that there is no debug file: the mapped files have the CFI, and debug files
 * would take long to read.
 */
static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			const char *file_name, const char *debuglink, GElf_Word crc,
			char **ret_name)
{
	(void)module, (void)userdata, (void)name, (void)base;
	(void)file_name, (void)debuglink, (void)crc, (void)ret_name;
	return -1;
}

/* libdwfl asks for one thread, by its number, and not for the list. */
static pid_t no_next_thread(Dwfl *dwfl, void *process, void **thread)
{
	(void)dwfl, (void)process, (void)thread;
	return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *process, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = process;
	return true;
}

static bool read_dwarf_word(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *word, void *process)
{
	const struct oracle *o = process;
	struct iovec local = {word, sizeof(*word)};
	struct iovec remote = {(void *)(uintptr_t)addr, sizeof(*word)};

	(void)dwfl;
	if (process_vm_readv(o->pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(*word))
		return false;
	*word = without_signature(*word);
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *process)
{
	struct arch_regs raw;
	uint64_t regs[ARCH_REGS];
	Dwarf_Word words[ARCH_REGS];

	(void)process;
	if (arch_get_regs((uint32_t)dwfl_thread_tid(thread), &raw) < 0)
		return false;
	arch_to_dwarf(&raw, regs);
	for (size_t i = 0; i < ARCH_REGS; i++)
		words[i] = without_signature(regs[i]);
	dwfl_thread_state_register_pc(thread, words[ARCH_PC]);
	/* The pc is the last register. On aarch64 it has no number of DWARF. */
	return dwfl_thread_state_registers(thread, 0, ARCH_LINK_REGISTER ? ARCH_PC : ARCH_REGS,
					   words);
}

static void walk_libdwfl(struct oracle *o, int32_t tid, struct oracle_stack *ret)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = no_debuginfo,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = no_next_thread,
		.get_thread = get_thread,
		.memory_read = read_dwarf_word,
		.set_initial_registers = set_registers,
	};
	int r = -1;

	if (o->dwfl == NULL) {
		o->dwfl = dwfl_begin(&callbacks);
		if (o->dwfl == NULL || dwfl_linux_proc_report(o->dwfl, o->pid) != 0 ||
		    dwfl_report_end(o->dwfl, NULL, NULL) != 0 ||
		    !dwfl_attach_state(o->dwfl, NULL, o->pid, &threads, o)) {
			ret->end = dwfl_errmsg(-1);
			oracle_forget(o);
			return;
		}
	}
	r = dwfl_getthread_frames(o->dwfl, tid, add_dwfl_frame, ret);
	ret->end = r < 0 ? dwfl_errmsg(-1) : "end";
	if (ret->end == NULL)
		ret->end = "?";
}

void oracle_walk(struct oracle *o, int32_t tid, struct oracle_stack *ret)
{
	ret->n = 0;
	switch (o->kind) {
	case ORACLE_LIBUNWIND:
		walk_libunwind(o, tid, ret);
		return;
	case ORACLE_LIBDWFL:
		walk_libdwfl(o, tid, ret);
		return;
	case ORACLE_N:
		return;
	}
}

bool oracle_agrees(const struct unwind_stack *ours, const struct oracle_stack *theirs,
		   size_t *ret_first)
{
	const bool cut = ours->end == UNWIND_END_CAPPED || ours->end == UNWIND_END_MAX_FRAMES;
	const size_t n = min_size(ours->n, theirs->n);
	size_t i = 0;

	while (i < n && unwind_plain_addr(ours->frames[i].addr) == theirs->addrs[i])
		i++;
	if (i == ours->n && (cut || i == theirs->n))
		return true;
	*ret_first = i;
	return false;
}
