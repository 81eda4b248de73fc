//! The command line of the front end that fits.
/// What QEMU needs beside a machine and a disk. Guest memory has to be shared: the back end maps it.
pub fn qemu(socket: &str, client: bool, queues: u16) -> String {
    // Options of QEMU are separated by commas; one in a value is written twice.
    let socket = socket.replace(',', ",,");
    let who = if client {
        "server=on,wait=off"
    } else {
        "reconnect=1"
    };
    let several = match queues {
        1 => String::new(),
        // A vector for each queue, one for changes of the configuration and one for commands.
        n => format!(",mq=on,vectors={}", 2 * n + 2),
    };
    format!(
        "-m 1G -object memory-backend-memfd,id=mem,size=1G,share=on -numa node,memdev=mem \
         -chardev socket,id=vnet,path={socket},{who} \
         -netdev vhost-user,id=net,chardev=vnet,queues={queues} \
         -device virtio-net-pci,netdev=net{several}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_are_written_twice() {
        let line = qemu("/run/a,b", true, 2);
        assert!(line.contains("path=/run/a,,b,server=on,wait=off"), "{line}");
        assert!(
            line.contains("queues=2") && line.contains("mq=on,vectors=6"),
            "{line}"
        );
    }
}
