#include "daemon/oracle/oracle.h"

#include <elfutils/libdwfl.h>
#include <libunwind-ptrace.h>
#include <stdlib.h>

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

int oracle_new(enum oracle_kind kind, int32_t pid, struct oracle **ret)
{
	struct oracle *o = calloc(1, sizeof(*o));

	if (o == NULL)
		return -ENOMEM;
	o->kind = kind;
	o->pid = pid;
	if (kind == ORACLE_LIBUNWIND) {
		o->space = unw_create_addr_space(&_UPT_accessors, 0);
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
			ret->addrs[ret->n]++;
			ret->addrs[ret->n - 1] += ret->n > 1;
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
	s->addrs[s->n] = pc + (s->n > 0 && is_activation);
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

static void walk_libdwfl(struct oracle *o, int32_t tid, struct oracle_stack *ret)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = no_debuginfo,
	};
	int r = -1;

	if (o->dwfl == NULL) {
		o->dwfl = dwfl_begin(&callbacks);
		if (o->dwfl == NULL || dwfl_linux_proc_report(o->dwfl, o->pid) != 0 ||
		    dwfl_report_end(o->dwfl, NULL, NULL) != 0 ||
		    dwfl_linux_proc_attach(o->dwfl, o->pid, true) != 0) {
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
