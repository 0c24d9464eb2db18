//! What diagnostics say: place, source line, hint; warnings and repairs.
