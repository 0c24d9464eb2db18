//! The assistant on a terminal, with a server of models on loopback.

mod approval;
mod bad_input;
mod chats;
mod commands;
mod conversation;
mod keys;
mod requests;
mod resize;
mod screens;
mod shell;
mod start;
mod tmux;
mod xterm;

use crate::ask::server::ModelServer;
use crate::harness::Karyi;

/// Prepares the assistant with a server of models.
fn assistant(server: &ModelServer, args: &[&str]) -> Karyi {
    let first = ["chat", "--no-rc", "--shell", "bash"];
    let all: Vec<&str> = first.iter().chain(args).copied().collect();
    program(server, &all)
}

/// Prepares the program with a server of models.
fn program(server: &ModelServer, args: &[&str]) -> Karyi {
    Karyi::with_args(args)
        .env("NO_COLOR", "1")
        .env("KARYI_MODEL", "openai_chat:tiny")
        .env("KARYI_MODEL_URL", &server.url)
        .env("OPENAI_API_KEY", "sk-test-9f8e7d6c5b4a")
}
