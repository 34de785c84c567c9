# sentry-profd: builds with GNU make. Everything that is made stands in build/.
VERSION = 0.1.0
PREFIX = /usr/local
DESTDIR =

CC ?= gcc
AR ?= ar
PKG_CONFIG ?= pkg-config
B = build

CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wformat=2 \
	-Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wwrite-strings \
	-Wundef -Wvla -Wswitch-enum -Wimplicit-fallthrough -Wnull-dereference
HARDENING = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
	-fstack-clash-protection -fPIE
ifeq ($(shell uname -m),x86_64)
HARDENING += -fcf-protection
endif
ifdef WERROR
WARNINGS += -Werror
endif
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DSENTRY_PROFD_VERSION='"$(VERSION)"' \
	-I. $(WARNINGS) $(HARDENING) $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed \
	$(LDFLAGS)

ifndef V
Q = @
say = @echo "  $(1)	$(2)";
endif

pkg = $(shell $(PKG_CONFIG) --libs $(1))

# One archive a directory; an executable links those that it needs.
lib_objs = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(1)/*.c))
ARCHIVES = base capture unwind aggregate ship proto
archives = $(foreach a,$(1),$(B)/$(a).a)
dir_base = lib/base
dir_capture = lib/capture
dir_unwind = lib/unwind
dir_aggregate = lib/aggregate
dir_ship = lib/ship
dir_proto = proto

EXES = sentry-profd sentry-profd-capture sentry-profd-unwind \
	sentry-profd-ship sentry-profctl


# daemon/ sources, archives and libraries of each executable: the link table
# of docs/ARCHITECTURE.md, checked by tests/arch.
sentry-profd_SRC = profd targets session files spawn privileges log
sentry-profd_LIB = base
sentry-profd_PKG =
sentry-profd-capture_SRC = captured privileges log
sentry-profd-capture_LIB = capture base
sentry-profd-capture_PKG =
sentry-profd-unwind_SRC = unwindd privileges sandbox log
sentry-profd-unwind_LIB = aggregate unwind base proto
sentry-profd-unwind_PKG = libdw libelf jansson libseccomp
sentry-profd-ship_SRC = shipd privileges sandbox log
sentry-profd-ship_LIB = ship proto base
sentry-profd-ship_PKG = libcurl zlib jansson libseccomp
sentry-profctl_SRC = profctl
sentry-profctl_LIB = base
sentry-profctl_PKG = libdw libelf libunwind-ptrace

BINS = $(EXES:%=$(B)/%)
ALL_OBJS =

all: $(BINS)

define archive_rules
$(B)/$(1).a: $(call lib_objs,$(dir_$(1)))
ALL_OBJS += $(call lib_objs,$(dir_$(1)))
endef
$(foreach a,$(ARCHIVES),$(eval $(call archive_rules,$(a))))

$(B)/%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

define exe_rules
$(1)_OBJ = $$($(1)_SRC:%=$(B)/obj/daemon/%.o)
ALL_OBJS += $$($(1)_OBJ)
$(B)/$(1): $$($(1)_OBJ) $$(call archives,$$($(1)_LIB))
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(ALL_LDFLAGS) \
		$$(if $$($(1)_PKG),$$(call pkg,$$($(1)_PKG)))
endef
$(foreach e,$(EXES),$(eval $(call exe_rules,$(e))))

$(B)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Unit tests: one program for each tests/unit/*/check_*.c, run by make unit.
CHECKS = $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/*/check_*.c))
TEST_PKG = check libdw libelf jansson libcurl zlib libseccomp libunwind-ptrace

$(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/obj/tests/unit/main.o \
		$(call archives,aggregate unwind capture ship proto base)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -o $@ $^ $(ALL_LDFLAGS) $(call pkg,$(TEST_PKG))

# Programs that the tests run as targets: tests/targets/*.c, see their head
# line for flags: "// cflags: ...".
TARGETS = $(patsubst tests/targets/%.c,$(B)/targets/%,$(wildcard tests/targets/*.c))
$(B)/targets/%: tests/targets/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -pthread \
		$$(sed -n 's,^// cflags: ,,p' $<) -o $@ $<

unit: $(CHECKS) $(TARGETS)
	$(Q)status=0; for t in $(CHECKS); do $$t || status=1; done; exit $$status

clean:
	rm -rf $(B)

.PHONY: all unit clean
.SECONDARY:
-include $(ALL_OBJS:.o=.d)
-include $(patsubst $(B)/tests/%,$(B)/obj/tests/unit/%.d,$(CHECKS))
