/* From libdw's description of a frame to a rule. */
#ifndef LIB_UNWIND_DWARF_CFI_RULE_H
#define LIB_UNWIND_DWARF_CFI_RULE_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "lib/base/util.h"
#include "lib/unwind/rules/rows.h"

/*
 * The rule of a frame; what it needs of full rules and operations is put into
 * b. RULE_CFA_NONE if it can't be expressed. Returns 0 or -ENOMEM.
 */
must_check int cfi_read_rule(struct rows_builder *b, Dwarf_Frame *frame, bool is_signal,
			     struct rule *ret);

#endif
