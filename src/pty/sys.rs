//! System calls that no safe crate wraps.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::libc;

/// Makes a second descriptor of a raw one that the caller keeps open.
pub(super) fn duplicate(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the borrow ends before this function does, and the only caller passes the descriptor
    // of a terminal it owns; a wrong number would make the kernel answer EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned()
}

/// Returns how many bytes wait in a pipe.
pub(super) fn bytes_waiting(pipe: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int to the address, which is that of a live local variable.
    let result = unsafe { libc::ioctl(pipe.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Sets the size of a terminal in rows and columns.
pub(super) fn set_size(terminal: impl AsFd, rows: u16, columns: u16) -> io::Result<()> {
    let size = libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let descriptor = terminal.as_fd().as_raw_fd();
    // SAFETY: TIOCSWINSZ reads one winsize from the address, which is that of a live local variable.
    let result = unsafe { libc::ioctl(descriptor, libc::TIOCSWINSZ, &raw const size) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Opens a descriptor that becomes readable when the process ends.
#[cfg(target_os = "linux")]
pub(super) fn open_process(pid: i32) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: the call takes two integers and touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor =
        RawFd::try_from(result).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Sends a signal to the process that a descriptor stands for.
#[cfg(target_os = "linux")]
pub(super) fn signal_process(process: impl AsFd, signal: i32) -> io::Result<()> {
    let descriptor = process.as_fd().as_raw_fd();
    let none = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the call takes integers and a null pointer, which asks the kernel to fill in the
    // signal's details by itself; it touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, descriptor, signal, none, 0) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns the version of the Landlock interface.
#[cfg(target_os = "linux")]
pub(super) fn landlock_version() -> io::Result<i64> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`: no rules are made, the version is returned.
    const VERSION: libc::c_uint = 1;
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel wants a null pointer and a size of 0, and touches no memory.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}
