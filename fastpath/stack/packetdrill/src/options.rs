//! Socket options by Linux' numbers.
use crate::blocking::shared;
use crate::calls::Result;
use hopscope_stack_abi::{options, tcp_info};
use hopscope_stack_engine::SocketError;
use nix::libc;

/// include/uapi/linux/tcp.h; libc lacks them.
const TCP_INQ: i32 = 36;
const TCP_CC_INFO: i32 = 26;
const SO_MEMINFO: i32 = 55;

pub fn set(fd: i32, level: i32, name: i32, value: &[u8]) -> Result<i64> {
    shared().call(|stack| {
        let socket = stack.descriptors.socket(fd)?;
        let id = socket.id;
        if (level, name) == (libc::IPPROTO_TCP, TCP_INQ) {
            socket.inq = value.first().is_some_and(|byte| *byte != 0);
            return Ok(0);
        }
        if (level, name) == (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) {
            // Scripts set it so that the kernel forgets its route: the engine keeps none.
            return Ok(0);
        }
        let option = options::parse(level, name, value)?;
        stack
            .engine
            .set_option(stack.now, id, option)
            .map_err(SocketError::errno)
            .map(|()| 0)
    })
}

/// The value's bytes.
pub fn get(fd: i32, level: i32, name: i32) -> Result<Vec<u8>> {
    shared().call(|stack| {
        let id = stack.descriptors.socket(fd)?.id;
        let number = |value: i64| Ok((value as i32).to_ne_bytes().to_vec());
        match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => {
                let error = stack.engine.take_error(id).map_err(SocketError::errno)?;
                return number(error.map_or(0, |error| i64::from(error.errno())));
            }
            (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                let info = stack
                    .engine
                    .tcp_info(stack.now, id)
                    .map_err(SocketError::errno)?;
                return Ok(tcp_info::bytes(&info));
            }
            // Neither CUBIC nor Reno has anything to tell.
            (libc::IPPROTO_TCP, TCP_CC_INFO) => return Ok(Vec::new()),
            (libc::SOL_SOCKET, SO_MEMINFO) => return Ok(vec![0; 36]),
            _ => {}
        }
        let found = stack
            .engine
            .option(id, options::named(level, name)?)
            .map_err(SocketError::errno)?;
        Ok(options::value(found))
    })
}
