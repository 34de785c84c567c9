# sentry-profd: builds with GNU make, into build/. "make help" lists the targets.
#
# Reading this file runs no compiler and needs no library. tests/tests.mk has tests and
# benchmarks, systemd/install.mk the installation and the packages.
#
#help make            the seven executables and the client library
#help make install    into $(DESTDIR)$(PREFIX); make uninstall
#help make deb        the Debian packages, build/sentry-profd*.deb; make deb-arm64: by the cross compiler
#help make dist       the sources of the last commit, build/sentry-profd-*.tar.gz
#help make demo       installs missing packages, builds, profiles a real program
#help make check      installs missing packages, builds, tests what a change may break
#help make clean
#help
#help CC, CFLAGS, LDFLAGS, PREFIX, DESTDIR as usual; B=DIR builds in another directory than
#help build/; V=1 shows the commands; WERROR=1 (the default if CI=true) makes warnings errors.
VERSION = 0.1.0
PREFIX = /usr/local
DESTDIR =
SYSCONFDIR = /etc
SBINDIR = $(PREFIX)/sbin
BINDIR = $(PREFIX)/bin
LIBEXECDIR = $(PREFIX)/libexec/sentry-profd
LIBDIR = $(PREFIX)/lib
INCLUDEDIR = $(PREFIX)/include
MANDIR = $(PREFIX)/share/man
DOCDIR = $(PREFIX)/share/doc/sentry-profd

# ?= would keep make's own default (cc).
ifeq ($(origin CC),default)
CC = gcc
endif
OBJCOPY ?= objcopy
PKG_CONFIG ?= pkg-config
B = build
# Of the archive that `make dist` has made, or of git; empty if not known.
COMMIT := $(shell (cat .commit || git --git-dir=.git rev-parse --short=12 HEAD) 2>/dev/null)

CFLAGS ?= -O2 -g
WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wformat=2 -Wstrict-prototypes \
	-Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wundef -Wvla -Wswitch-enum \
	-Wimplicit-fallthrough -Wnull-dereference
HARDENING = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong \
	-fstack-clash-protection -fPIE
MACHINE ?= $(shell uname -m)
ifeq ($(MACHINE),x86_64)
HARDENING += -fcf-protection
else ifeq ($(MACHINE),aarch64)
HARDENING += -mbranch-protection=standard
endif
ifeq ($(CI),true)
WERROR ?= 1
endif
ifdef WERROR
WARNINGS += -Werror
endif
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DSENTRY_PROFD_VERSION='"$(VERSION)"' \
	-I. $(WARNINGS) $(HARDENING) $(CFLAGS)
HARDENED_LINK = -Wl,-z,relro,-z,now -Wl,-z,noexecstack -Wl,--as-needed
# These headers have all that the processes say to each other; MSG_NUMBER is their hash.
MSG_HEADERS = $(wildcard daemon/msg/*.h) proto/client_report.h lib/unwind/unwind.h \
	$(addprefix lib/,base/ipc.h base/ring.h base/watch_part.h capture/counters.h capture/sample.h)
# Where the broker finds the other executables if they are not beside it.
DAEMON_CFLAGS = -DLIBEXECDIR='"$(LIBEXECDIR)"' -DBINDIR='"$(BINDIR)"' -DSBINDIR='"$(SBINDIR)"' \
	-DMSG_NUMBER=0x$(shell cat $(MSG_HEADERS) | sha256sum | cut -c -16)
ALL_LDFLAGS = -pie $(HARDENED_LINK) $(LDFLAGS)

ifndef V
Q = @
say = @echo "  $(1)	$(2)";
endif
define compile
@mkdir -p $(@D)
$(call say,CC,$<)
$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
endef

pkg = $(shell $(PKG_CONFIG) --libs $(1))

# One archive for each of these folders, of its name and with its subfolders (proto: without); an
# executable links the objects that it calls.
ARCHIVES = $(addprefix lib/,base capture unwind aggregate ship client) proto \
	proto/import proto/export $(addprefix daemon/,msg common config process)
archives = $(foreach a,$(1),$(B)/$(a).a)
objects = $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(1)/*.c $(if $(filter-out proto,$(1)),$(1)/*/*.c)))

EXES = sentry-profd $(addprefix sentry-profd-,capture unwind ship oracle metrics) sentry-profctl

# The programs. Each is one folder of daemon/ with everything below it, and links what it calls of
# the shared folders and of lib/. docs/ARCHITECTURE.md lists the external libraries.
sentry-profd_DIR = daemon/broker
sentry-profd_LIB = config process common msg ship capture unwind proto base
sentry-profd-capture_DIR = daemon/capture
sentry-profd-capture_LIB = process common msg capture base
sentry-profd-unwind_DIR = daemon/unwind
sentry-profd-unwind_LIB = common msg aggregate unwind base proto
sentry-profd-unwind_PKG = libdw libelf liblzma libzstd jansson libseccomp
# An archive without a pkg-config file.
sentry-profd-unwind_LIBS = -liberty
sentry-profd-ship_DIR = daemon/ship
sentry-profd-ship_LIB = common msg ship proto base
sentry-profd-ship_PKG = libcurl zlib libzstd jansson libseccomp
# Other unwinders, for comparison: they read a target's files while they trace it.
sentry-profd-oracle_DIR = daemon/oracle
sentry-profd-oracle_LIB = process common msg capture unwind base
sentry-profd-oracle_PKG = libdw libelf liblzma libzstd libunwind-ptrace
sentry-profd-oracle_LIBS = -liberty
# Serves HTTP, and asks the daemon as sentry-profctl does.
sentry-profd-metrics_DIR = daemon/metrics
sentry-profd-metrics_LIB = process common msg base
sentry-profd-metrics_PKG = libmicrohttpd
sentry-profctl_DIR = daemon/ctl
sentry-profctl_LIB = config process common msg export import ship aggregate unwind proto base
sentry-profctl_PKG = jansson zlib libprotobuf-c ncursesw
sentry-profctl_LIBS = -liberty

# An additional object of each executable: the options of the sanitizers.
EXE_EXTRA =

BINS = $(EXES:%=$(B)/%)
ALL_OBJS =

all: $(BINS)
	@:

# A file whose time changes with the text of a variable, so that a change of flags
# rebuilds what was built with other flags.
define stamp_rules
$(B)/$(1): FORCE
	@mkdir -p $$(@D)
	@echo '$(subst ','\'',$(2))' | cmp -s - $$@ || \
		echo '$(subst ','\'',$(2))' > $$@
endef
$(eval $(call stamp_rules,flags,$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS)))
$(eval $(call stamp_rules,daemon-flags,$(DAEMON_CFLAGS)))
$(eval $(call stamp_rules,version,$(VERSION)$(if $(COMMIT), (commit $(COMMIT)))))

define archive_rules
$(B)/$(notdir $(1)).a: $(call objects,$(1))
ALL_OBJS += $(call objects,$(1))
endef
$(foreach a,$(ARCHIVES),$(eval $(call archive_rules,$(a))))

$(B)/%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# Generated sources, and the archives that they belong to. An update of the C and C++ libraries,
# whose function names are in library_names.c, does not make it anew.
NM ?= nm
PROTOC_C ?= protoc-c
HOSTCC ?= cc
$(eval $(call stamp_rules,compilers,$(CC) $(CXX) $(NM)))
GENERATED = $(B)/generated
define generate
@mkdir -p $(@D)
$(call say,GEN,$@)
$(Q)$(1) >$@.new && mv $@.new $@
endef
$(GENERATED)/library_names.c: lib/aggregate/library_names.sh $(B)/compilers
	$(call generate,CC='$(CC)' CXX='$(CXX)' NM='$(NM)' sh $<)
$(GENERATED)/version.c: $(B)/version
	$(call generate,sed 's|.*|#include "daemon/common/version.h"\nconst char version_text[] = "&";|' $<)
$(GENERATED)/html_page.c: $(filter-out %.c %.h,$(wildcard proto/export/html/*))
	$(call generate,sh proto/export/html/embed.sh)
$(GENERATED)/pprof.pb-c.c $(GENERATED)/pprof.pb-c.h &: proto/export/pprof.proto
	@mkdir -p $(@D)
	$(call say,GEN,$(GENERATED)/pprof.pb-c.c)
	$(Q)$(PROTOC_C) --c_out=$(GENERATED) -Iproto/export $<
$(B)/aggregate.a: $(B)/obj/library_names.o
$(B)/export.a: $(B)/obj/html_page.o $(B)/obj/pprof.pb-c.o
ALL_OBJS += $(addprefix $(B)/obj/,library_names.o html_page.o pprof.pb-c.o version.o)
$(B)/obj/%.o: $(GENERATED)/%.c Makefile $(B)/flags
	$(compile)

# The seccomp filters of capture, made on the build machine for MACHINE.
PRINT_FILTER = daemon/capture/filter/print_filter.c
$(B)/print_filter: $(PRINT_FILTER) daemon/common/sandbox.c daemon/common/landlock.c \
		daemon/common/sandbox.h daemon/common/landlock.h lib/base/util.h Makefile
	@mkdir -p $(@D)
	$(call say,HOSTCC,$@)
	$(Q)$(HOSTCC) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -I. -o $@ $(filter %.c,$^) -lseccomp
$(GENERATED)/capture_filter.h: $(B)/print_filter Makefile $(B)/flags
	$(call generate,$< $(MACHINE))

$(B)/obj/proto/export/pprof.o: $(GENERATED)/pprof.pb-c.h
$(B)/obj/daemon/capture/filter.o: $(GENERATED)/capture_filter.h
$(addprefix $(B)/obj/,pprof.pb-c.o proto/export/pprof.o daemon/capture/filter.o): \
	ALL_CFLAGS += -I$(GENERATED)

define exe_rules
$(1)_OBJ = $$(filter-out %/print_filter.o,$$(call objects,$$($(1)_DIR)))
ALL_OBJS += $$($(1)_OBJ)
$(B)/$(1): $$($(1)_OBJ) $(B)/obj/version.o $$(call archives,$$($(1)_LIB)) $$(EXE_EXTRA)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(ALL_CFLAGS) -o $$@ $$^ $$(ALL_LDFLAGS) \
		$$(if $$($(1)_PKG),$$(call pkg,$$($(1)_PKG))) $$($(1)_LIBS)
endef
$(foreach e,$(EXES),$(eval $(call exe_rules,$(e))))

# The library that targets link, shared and static. It exports the functions of its header only.
# nodelete: the state of a process and its connection outlive dlclose(3).
SOVERSION = 0
CLIENT_OBJS = $(call objects,lib/client)
CLIENT_SO = $(B)/libsentry_profd.so
CLIENT_LIBRARY = $(CLIENT_SO) $(B)/libsentry_profd.a $(B)/sentry_profd.pc
$(CLIENT_OBJS): ALL_CFLAGS += -fPIC -fvisibility=hidden
all: $(CLIENT_LIBRARY)

$(CLIENT_SO): $(CLIENT_OBJS) lib/client/sentry_profd.map
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -shared -o $@ $(CLIENT_OBJS) \
		-Wl,-soname,libsentry_profd.so.$(SOVERSION) \
		-Wl,--version-script,lib/client/sentry_profd.map -Wl,-z,nodelete \
		$(HARDENED_LINK) $(LDFLAGS)
	$(Q)ln -sf libsentry_profd.so $@.$(SOVERSION)

# One object, so that names that its files share are not visible outside.
$(B)/libsentry_profd.a: $(CLIENT_OBJS)
	$(call say,AR,$@)
	$(Q)$(LD) -r -o $(B)/obj/lib/client/sentry_profd.o $^
	$(Q)$(OBJCOPY) --localize-hidden $(B)/obj/lib/client/sentry_profd.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(B)/obj/lib/client/sentry_profd.o

$(eval $(call stamp_rules,places,$(VERSION) $(PREFIX) $(LIBDIR) $(INCLUDEDIR)))
$(B)/sentry_profd.pc: lib/client/sentry_profd.pc.in $(B)/places
	$(Q)sed -e 's,@PREFIX@,$(PREFIX),' -e 's,@LIBDIR@,$(LIBDIR),' \
		-e 's,@INCLUDEDIR@,$(INCLUDEDIR),' -e 's,@VERSION@,$(VERSION),' $< >$@

DAEMON_OBJS = $(sort $(filter $(B)/obj/daemon/%,$(ALL_OBJS)))
$(addprefix $(B)/obj/daemon/,common/spawn.o msg/msg_io.o): $(B)/daemon-flags
$(addprefix $(B)/obj/daemon/,common/spawn.o msg/msg_io.o): ALL_CFLAGS += $(DAEMON_CFLAGS)

$(B)/obj/%.o: %.c Makefile $(B)/flags
	$(compile)

include tests/tests.mk
include tests/aarch64/aarch64.mk
include systemd/install.mk

clean:
	rm -rf $(B)

help:
	@sed -n 's/^#help \{0,1\}//p' Makefile tests/tests.mk

FORCE:
.PHONY: all clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(ALL_OBJS:.o=.d)
