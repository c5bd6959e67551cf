.DEFAULT_GOAL := help
.PHONY: demo test lint bench cluster help

demo: ## Run one example job of each system on isolated hosts of this machine
	@cargo xtask setup demo && cargo build --release --quiet --no-default-features && cargo xtask demo

test: ## Install what the tests need and run them all
	@cargo xtask setup test && cargo test --workspace --quiet

lint: ## rustfmt, clippy, rustdoc and tidy checks, all without a warning
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets --quiet -- -D warnings
	@RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --workspace --no-deps --document-private-items --quiet
	@cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --quiet -- -D warnings
	@cargo xtask tidy

bench: ## Measure, and print tables
	@cargo xtask setup bench && cargo bench --workspace --bench '*'

cluster: ## Start a real Kubernetes on this machine to play with
	@cargo xtask setup test && cargo xtask cluster up

help: ## List the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10
