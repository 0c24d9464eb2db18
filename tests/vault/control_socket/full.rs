//! Who listens and hears nobody holds up nothing that is started beside it.

use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use nix::sys::socket::{Backlog, listen};

use super::{VALUE, WaitingRun};
use crate::vault::home::Home;

/// A socket whose program takes no call, and whose queue is full: who connects and is ready to wait, waits for ever.
struct Full {
    path: PathBuf,
    listener: UnixListener,
    waiting: UnixStream,
}

impl Full {
    /// Makes one where sessions listen, under the name of a process that is not there.
    fn new(home: &Home) -> Self {
        let directory = home.path().join("run/karyi");
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&directory).unwrap();
        let path = directory.join("control-4194399-1");
        let listener = UnixListener::bind(&path).unwrap();
        listen(&listener, Backlog::new(0).unwrap()).unwrap();
        Self {
            waiting: UnixStream::connect(&path).unwrap(),
            listener,
            path,
        }
    }

    /// Closes the listener and leaves the socket's file. A program that another test starts inherits the listener for a
    /// moment; connecting waits until that is over.
    fn close(self) {
        drop((self.listener, self.waiting));
        let refused = UnixStream::connect(self.path).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_run_goes_on() {
    let home = Home::new();
    let _full = Full::new(&home);
    let ran = home.script("<tools><command>echo begun</command></tools>");
    let report = ran.exit(0).stdout;
    assert!(report.contains("begun"), "{report}");
}

#[test]
fn an_mcp_client_is_answered() {
    let home = Home::new();
    let _full = Full::new(&home);
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\
                 \"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n";
    let answer = home.karyi(&["mcp"], hello).exit(0).json();
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn a_value_is_given_to_who_hears() {
    let home = Home::new();
    let full = Full::new(&home);
    home.give("TOKEN", VALUE, &[]).exit(2).error("no_session");
    full.close();
    // It takes away what is left of that.
    let mut run = WaitingRun::start(&home);
    let _full = Full::new(&home);
    home.give("TOKEN", VALUE, &[]).exit(0);
    assert_eq!(
        run.command("echo $KARYI{TOKEN}")["output"],
        "$KARYI{TOKEN}\n"
    );
    run.end();
}
