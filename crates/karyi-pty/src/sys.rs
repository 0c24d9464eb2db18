//! System calls that no safe crate wraps.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc;

/// Returns true if the program was started without a standard output. Before `main` the standard library opens
/// `/dev/null` in its place, where every report would be lost.
#[must_use]
pub fn lacks_output() -> bool {
    LACKS_OUTPUT.load(Ordering::Relaxed)
}

static LACKS_OUTPUT: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds functions that the system calls before `main`, with arguments that this one
// does not take; it calls nothing that needs to be made ready first.
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK_AT_OUTPUT: extern "C" fn() = look_at_output;

#[cfg(target_os = "linux")]
extern "C" fn look_at_output() {
    // SAFETY: it only asks for the flags of a number that may be no descriptor.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    LACKS_OUTPUT.store(flags < 0, Ordering::Relaxed);
}

/// Duplicates a raw descriptor that the caller keeps open.
pub(crate) fn duplicate(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the borrow ends before this function does, and the only caller passes the descriptor
    // of a terminal it owns; a wrong number would make the kernel answer EBADF.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned()
}

/// Returns the number of unread bytes in a pipe.
pub(crate) fn bytes_waiting(pipe: impl AsFd) -> io::Result<usize> {
    let mut count: libc::c_int = 0;
    // SAFETY: FIONREAD writes one int to the address, which is that of a live local variable.
    let result = unsafe { libc::ioctl(pipe.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Locks the pages of some bytes in memory, so that they are never swapped. They stay locked when the bytes are gone.
pub(crate) fn lock_memory(bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the range is that of a live slice, and locking changes nothing that a program can see.
    let result = unsafe { libc::mlock(bytes.as_ptr().cast(), bytes.len()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sets the size of a terminal in rows and columns.
pub(crate) fn set_size(terminal: impl AsFd, rows: u16, columns: u16) -> io::Result<()> {
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

/// Returns the soft limit of open descriptors of a process.
#[cfg(target_os = "linux")]
pub(crate) fn descriptor_limit(pid: i32) -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: with no new limit the call only writes one rlimit to the address, which is that of a
    // live local variable.
    let result =
        unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit.rlim_cur)
}

/// Opens a descriptor that becomes readable when the process ends.
#[cfg(target_os = "linux")]
pub(crate) fn open_process(pid: i32) -> io::Result<OwnedFd> {
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

/// Duplicates a descriptor of another process.
#[cfg(target_os = "linux")]
pub(crate) fn descriptor_of(process: impl AsFd, number: RawFd) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    let process = process.as_fd().as_raw_fd();
    // SAFETY: the call takes three integers and touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process, number, 0) };
    let descriptor =
        RawFd::try_from(result).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns true if a descriptor of a process and one of ours are the same open file.
#[cfg(target_os = "linux")]
pub(crate) fn is_copied_from(process: i32, number: RawFd, copy: impl AsFd) -> io::Result<bool> {
    const FILE: libc::c_int = 0;
    let (own, copy) = (std::process::id(), copy.as_fd().as_raw_fd());
    // SAFETY: the call takes integers and touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_kcmp, process, own, FILE, number, copy) };
    match result {
        0 => Ok(true),
        1.. => Ok(false),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a signal to an open process.
#[cfg(target_os = "linux")]
pub(crate) fn signal_process(process: impl AsFd, signal: i32) -> io::Result<()> {
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
pub(crate) fn landlock_version() -> io::Result<i64> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`: no rules are created, the version is returned.
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

/// Overwrites the values of the environment variables whose names start with `prefix`, and removes the variables. Must
/// be called while there is only one thread.
pub(crate) fn forget_variables(prefix: &[u8]) {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
    }
    // SAFETY: `environ` is null or a list of pointers to strings that ends with a null pointer; the
    // list and the strings are this process's own and writable, and with a single thread nobody else
    // reads or changes them meanwhile. Each write stays inside a string, before its end, or inside
    // the list.
    unsafe {
        let list = environ;
        if list.is_null() {
            return;
        }
        let (mut from, mut to) = (list, list);
        while !(*from).is_null() {
            let text = *from;
            let length = libc::strlen(text);
            let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length);
            if bytes.starts_with(prefix) {
                let name = bytes
                    .iter()
                    .position(|byte| *byte == b'=')
                    .unwrap_or(length);
                for place in name..length {
                    // Volatile, or the compiler may remove a write that is never read.
                    std::ptr::write_volatile(text.add(place), 0);
                }
            } else {
                *to = text;
                to = to.add(1);
            }
            from = from.add(1);
        }
        *to = std::ptr::null_mut();
    }
}

/// Duplicates an inherited descriptor and replaces the original with `/dev/null`, close-on-exec: opening it by its
/// number could otherwise read its content once more.
pub(crate) fn take_inherited(descriptor: RawFd) -> io::Result<OwnedFd> {
    let own = duplicate(descriptor)?;
    let nothing = std::fs::File::open("/dev/null")?;
    // SAFETY: the call takes three integers and touches no memory; the number is that of an open
    // descriptor, which nothing in this process owns.
    let result = unsafe { replace(nothing.as_raw_fd(), descriptor) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(own)
}

/// Replaces a descriptor with a copy of another one, close-on-exec.
#[cfg(target_os = "linux")]
unsafe fn replace(from: RawFd, to: RawFd) -> libc::c_int {
    // SAFETY: as told by the caller.
    unsafe { libc::dup3(from, to, libc::O_CLOEXEC) }
}

/// Replaces a descriptor with a copy of another one, close-on-exec.
#[cfg(not(target_os = "linux"))]
unsafe fn replace(from: RawFd, to: RawFd) -> libc::c_int {
    // SAFETY: as told by the caller.
    unsafe {
        match libc::dup2(from, to) {
            done if done < 0 => done,
            _ => libc::fcntl(to, libc::F_SETFD, libc::FD_CLOEXEC),
        }
    }
}
