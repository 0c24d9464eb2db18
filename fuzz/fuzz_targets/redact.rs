#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| karyi_fuzz::redact(data));
