//! Links debug builds at a fixed address.
//!
//! The suite starts the program some thousands of times, and moving 200 MB of unoptimised code to a random address takes
//! a third of each start. What is installed keeps its random address.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| std::env::var(name).unwrap_or_default();
    let is_gnu_linux =
        variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_gnu_linux && variable("OPT_LEVEL") == "0" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
