//! recvmsg and sendmsg, many at once, and bytes from files.
use super::files::{again, is_datagram, receive, send_parts};
use super::limit::Limit;
use super::memory::{
    IOV_MAX, address, bytes, fail, get, is_nowhere, parts, parts_mut, put, put_address, room,
};
use super::wait::{call, has_become_the_instances};
use super::{instance, lock, real};
use crate::options;
use crate::sleeper::span_until;
use crate::step::Step;
use crate::table::{self, Entry};
use crate::told::{To, Told};
use nix::libc::{self, c_int, c_uint};

/// Of a file that is sent, at once.
const PIECE: usize = 64 << 10;

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn recvmsg(
    fd: c_int,
    message: *mut libc::msghdr,
    flags: c_int,
) -> isize {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        let read = unsafe { real::recvmsg(fd, message, flags) };
        if read >= 0 {
            // SAFETY: as libc's, which has just filled it in.
            unsafe { instance::came_with(&get(message)) };
        }
        return read;
    }
    if is_nowhere(message) {
        return fail(libc::EFAULT);
    }
    if let Entry::Instance(name) = table::get(fd) {
        return match instance::before_receive(name, flags) {
            // SAFETY: as libc's.
            Ok(()) => unsafe {
                match real::recvmsg(fd, message, flags) {
                    0 => {
                        let header = get(message);
                        instance::received(name, room(header.msg_iov, header.msg_iovlen), 0)
                    }
                    got => instance::received(name, 1, got),
                }
            },
            Err(error) => fail(error),
        };
    }
    // SAFETY: as libc's.
    let header = unsafe { get(message) };
    // SAFETY: as libc's.
    let has_room = !is_nowhere(header.msg_control);
    let mut told = Told {
        control_room: if has_room {
            header.msg_controllen.min(1 << 16)
        } else {
            0
        },
        ..Told::default()
    };
    // SAFETY: as libc's.
    let ours = match unsafe { parts_mut(header.msg_iov, header.msg_iovlen) } {
        Ok(mut into) => match instance::datagrams::name(fd) {
            Some(name) => Some(instance::datagrams::receive(
                fd, name, &mut into, flags, &mut told,
            )),
            None => receive(fd, &mut into, flags, &mut told),
        },
        Err(error) => Some(fail(of_message(&header, error))),
    };
    let Some(read) = ours else {
        // SAFETY: as libc's.
        return unsafe {
            again!(
                fd,
                recvmsg(fd, message, flags),
                real::recvmsg(fd, message, flags)
            )
        };
    };
    if read >= 0 {
        let inq = lock::with(|state| {
            let index = state.index_of(fd)?;
            state.inq(index)
        });
        // SAFETY: as libc's.
        unsafe {
            let mut header = header;
            if !is_nowhere(header.msg_name) {
                let name_len = &raw mut header.msg_namelen;
                let _ = put_address(&told.from, header.msg_name.cast(), name_len);
            }
            header.msg_flags = told.flags;
            match inq {
                Ok(Some(inq)) => put_inq(&mut header, inq),
                _ => put_control(&mut header, &told.control),
            }
            put(message, header);
        }
    }
    read
}

/// Too many vectors are EMSGSIZE here (copy_msghdr_from_user).
fn of_message(header: &libc::msghdr, error: c_int) -> c_int {
    match header.msg_iovlen > IOV_MAX {
        true => libc::EMSGSIZE,
        false => error,
    }
}

/// What was received beside a datagram: no more than there is room for.
unsafe fn put_control(message: &mut libc::msghdr, control: &[u8]) {
    message.msg_controllen = control.len();
    if !control.is_empty() {
        let into: *mut u8 = message.msg_control.cast();
        // SAFETY: the program's memory for it is as long at least.
        unsafe { into.copy_from_nonoverlapping(control.as_ptr(), control.len()) };
    }
}

/// TCP_CM_INQ: how much is left to read.
unsafe fn put_inq(message: &mut libc::msghdr, inq: u32) {
    const TCP_CM_INQ: c_int = 36;
    // SAFETY: libc's macros, on a message whose control bytes are the program's to have written.
    unsafe {
        let space = libc::CMSG_SPACE(4) as usize;
        if is_nowhere(message.msg_control) || message.msg_controllen < space {
            message.msg_controllen = 0;
            return;
        }
        let header: *mut libc::cmsghdr = message.msg_control.cast();
        let told = libc::cmsghdr {
            cmsg_len: libc::CMSG_LEN(4) as usize,
            cmsg_level: libc::IPPROTO_TCP,
            cmsg_type: TCP_CM_INQ,
        };
        put(header, told);
        put(header.add(1).cast(), inq);
        message.msg_controllen = space;
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const libc::msghdr,
    flags: c_int,
) -> isize {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        return unsafe { real::sendmsg(fd, message, flags) };
    }
    if is_nowhere(message) {
        return fail(libc::EFAULT);
    }
    // SAFETY: as libc's.
    let header = unsafe { get(message) };
    if let Entry::Instance(name) = table::get(fd) {
        // SAFETY: as libc's.
        return unsafe { instance::sendmsg(fd, name, &header, flags) };
    }
    let (name, name_len) = (header.msg_name, header.msg_namelen);
    let mut to = To::default();
    if !name.is_null() {
        // SAFETY: as libc's.
        match unsafe { address(name.cast(), name_len) } {
            Ok(name) => to.address = Some(name),
            Err(error) => return fail(error),
        }
    }
    if !is_nowhere(header.msg_control) {
        // SAFETY: as libc's.
        match unsafe { bytes(header.msg_control, header.msg_controllen) } {
            Ok(control) => to.control = control,
            Err(error) => return fail(error),
        }
    }
    // SAFETY: as libc's.
    let ours = match unsafe { parts(header.msg_iov, header.msg_iovlen) } {
        Ok(from) => match instance::datagrams::name(fd) {
            Some(name) => Some(instance::datagrams::send(fd, name, &from, flags, to)),
            None => send_parts(fd, &from, flags, to),
        },
        Err(error) => Some(fail(of_message(&header, error))),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe {
        again!(
            fd,
            sendmsg(fd, message, flags),
            real::sendmsg(fd, message, flags)
        )
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
    span: *mut libc::timespec,
) -> c_int {
    if !has_calls(fd) {
        // SAFETY: as libc's.
        let got = unsafe { real::recvmmsg(fd, messages, count, flags, span) };
        for at in 0..usize::try_from(got).unwrap_or(0) {
            // SAFETY: as libc's, which has just filled it in.
            unsafe { instance::came_with(&get(&raw const (*messages.add(at)).msg_hdr)) };
        }
        return got;
    }
    let mut got = 0;
    let datagrams = is_datagram(fd);
    // SAFETY: as libc's.
    let limit = match unsafe { Limit::span(span) } {
        Ok(limit) => limit,
        Err(error) => return fail(error) as c_int,
    };
    while got < count {
        // Whoever reads from a stream so wants what there is: only the first waits. Of datagrams all are waited for.
        let at_once = got > 0 && (!datagrams || flags & libc::MSG_WAITFORONE != 0);
        let more = if at_once { libc::MSG_DONTWAIT } else { 0 };
        if got > 0 && datagrams && has_error(fd) {
            // It is for the next call.
            break;
        }
        // SAFETY: as libc's: `count` headers.
        let read = unsafe {
            let message = messages.add(got as usize);
            let read = recvmsg(
                fd,
                &raw mut (*message).msg_hdr,
                (flags & !libc::MSG_WAITFORONE) | more,
            );
            if read >= 0 {
                put(&raw mut (*message).msg_len, read as c_uint);
            }
            read
        };
        if read < 0 {
            return if got > 0 { got as c_int } else { -1 };
        }
        got += 1;
        // As Linux: looked at after each datagram, and not while one is waited for.
        if read == 0 && !datagrams || limit.is_over() {
            break;
        }
    }
    if let Some(at) = limit.at() {
        // SAFETY: as libc's; it was read above.
        unsafe { put(span, span_until(at)) };
    }
    got as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut libc::mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    if !has_calls(fd) {
        // SAFETY: as libc's.
        return unsafe { real::sendmmsg(fd, messages, count, flags) };
    }
    for done in 0..count.min(1024) {
        // SAFETY: as libc's: `count` headers.
        let sent = unsafe {
            let message = messages.add(done as usize);
            let sent = sendmsg(fd, &raw const (*message).msg_hdr, flags);
            if sent >= 0 {
                put(&raw mut (*message).msg_len, sent as c_uint);
            }
            sent
        };
        if sent < 0 {
            return if done > 0 { done as c_int } else { -1 };
        }
    }
    count.min(1024) as c_int
}

fn has_error(fd: c_int) -> bool {
    if let Some(name) = instance::datagrams::name(fd) {
        return instance::datagrams::has_error(name);
    }
    let level = lock::with(|state| {
        let index = state.index_of(fd)?;
        Some(state.level(index))
    });
    matches!(level, Ok(Some(level)) if level & libc::EPOLLERR as u32 != 0)
}

/// Each message is one of the hooks' calls.
fn has_calls(fd: c_int) -> bool {
    matches!(
        table::get(fd),
        Entry::Ours(_) | Entry::Instance(_) | Entry::Datagrams(_)
    )
}

/// Bytes do not go as they are.
fn is_stack(fd: c_int) -> bool {
    matches!(table::get(fd), Entry::Ours(_) | Entry::Datagrams(_))
}

/// From a file into a connection, with a copy on the way.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn sendfile(
    to: c_int,
    from: c_int,
    at: *mut libc::off_t,
    len: usize,
) -> isize {
    if !is_stack(to) {
        // SAFETY: as libc's.
        return unsafe { real::sendfile(to, from, at, len) };
    }
    if is_datagram(to) {
        // Programs fall back to read and write.
        return fail(libc::EINVAL);
    }
    let mut place = -1;
    if !at.is_null() {
        // SAFETY: as libc's.
        place = unsafe { get(at) };
        if place < 0 {
            return fail(libc::EINVAL);
        }
    }
    let mut buffer = vec![0; PIECE.min(len)];
    let mut sent = 0;
    while sent < len {
        let room = (len - sent).min(PIECE);
        // SAFETY: the buffer has room; the descriptor is the kernel's file, whose position is put back below where less is sent.
        let read = unsafe {
            match at.is_null() {
                true => real::read(from, buffer.as_mut_ptr().cast(), room),
                false => libc::pread64(from, buffer.as_mut_ptr().cast(), room, place),
            }
        };
        if read <= 0 {
            return if sent > 0 || read == 0 {
                sent as isize
            } else {
                -1
            };
        }
        let read = read as usize;
        let more = if sent + read < len && read == room {
            libc::MSG_MORE
        } else {
            0
        };
        let done = send_parts(to, &[&buffer[..read]], more, To::default())
            .unwrap_or_else(|| fail(libc::ENOTCONN));
        let taken = done.max(0) as usize;
        if at.is_null() && taken < read {
            // SAFETY: no memory is named.
            unsafe { libc::lseek64(from, taken as i64 - read as i64, libc::SEEK_CUR) };
        }
        if done < 0 {
            return if sent > 0 { sent as isize } else { done };
        }
        sent += taken;
        place += taken as i64;
        if !at.is_null() {
            // SAFETY: as libc's.
            unsafe { put(at, place) };
        }
        if taken < read {
            break;
        }
    }
    sent as isize
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn sendfile64(
    to: c_int,
    from: c_int,
    at: *mut libc::off_t,
    len: usize,
) -> isize {
    // SAFETY: as libc's.
    unsafe { sendfile(to, from, at, len) }
}

/// Programs fall back to read and write.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn splice(
    from: c_int,
    from_at: *mut libc::loff_t,
    to: c_int,
    to_at: *mut libc::loff_t,
    len: usize,
    flags: c_uint,
) -> isize {
    if is_stack(from) || is_stack(to) {
        return fail(libc::EINVAL);
    }
    // SAFETY: as libc's.
    unsafe { real::splice(from, from_at, to, to_at, len, flags) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    into: *mut libc::c_void,
    len: *mut libc::socklen_t,
) -> c_int {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        return unsafe { real::getsockopt(fd, level, name, into, len) };
    }
    if let Entry::Instance(socket) = table::get(fd) {
        // SAFETY: as libc's.
        return unsafe { instance::getsockopt(fd, socket, (level, name), into, len) };
    }
    if let Some(socket) = instance::datagrams::name(fd) {
        let option = (level, name);
        // SAFETY: as libc's.
        return unsafe { instance::datagram_options::getsockopt(fd, socket, option, into, len) };
    }
    let mut value = Vec::new();
    let ours = call(fd, |state, index| match state.option(index, level, name) {
        Ok(found) => {
            value = found;
            Step::Done(0)
        }
        Err(step) => step,
    });
    match ours {
        Some(0) => {
            // SAFETY: as libc's.
            let put = unsafe { super::memory::put_option(&value, level, into, len) };
            super::memory::done(put) as c_int
        }
        Some(failed) => failed as c_int,
        None if has_become_the_instances(fd) => {
            // SAFETY: as libc's.
            unsafe { getsockopt(fd, level, name, into, len) }
        }
        // SAFETY: as libc's.
        None => unsafe { real::getsockopt(fd, level, name, into, len) },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const libc::c_void,
    len: libc::socklen_t,
) -> c_int {
    if table::get(fd) == Entry::Kernel {
        // SAFETY: as libc's.
        return unsafe { real::setsockopt(fd, level, name, value, len) };
    }
    if options::is_of_the_kernel_alone(level, name) {
        options::say_of_the_kernel_alone(level, name);
        return fail(libc::ENOPROTOOPT) as c_int;
    }
    // SAFETY: as libc's.
    let ours = match unsafe { bytes(value, len as usize) } {
        Ok(given) if let Entry::Instance(socket) = table::get(fd) => {
            instance::setsockopt(socket, level, name, given).map(|done| done as isize)
        }
        Ok(given) if let Some(socket) = instance::datagrams::name(fd) => {
            let done = instance::datagram_options::setsockopt(fd, socket, level, name, given);
            Some(done as isize)
        }
        Ok(given) => {
            let done = call(fd, |state, index| {
                state.set_option(index, level, name, given)
            });
            if done.is_none() && has_become_the_instances(fd) {
                // SAFETY: as libc's.
                return unsafe { setsockopt(fd, level, name, value, len) };
            }
            done
        }
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.map_or_else(
        || unsafe { real::setsockopt(fd, level, name, value, len) },
        |done| done as c_int,
    )
}
