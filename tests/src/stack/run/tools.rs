//! A web server, and what it serves.
use anyhow::{Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// On the kernel's stack, with one file.
pub(super) fn nginx(folder: &Path, listen: &str, more: &str) -> Result<Command> {
    std::fs::create_dir_all(folder)?;
    let shown = folder.display();
    let config = folder.join("nginx.conf");
    let text = format!(
        "daemon off; pid {shown}/pid; error_log {shown}/error.log; {more}\n\
         events {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 1000000; root {shown}; client_body_temp_path {shown}/t1; proxy_temp_path {shown}/t2;\n\
         fastcgi_temp_path {shown}/t3; uwsgi_temp_path {shown}/t4; scgi_temp_path {shown}/t5;\n\
         server {{ {listen} }} }}\n"
    );
    std::fs::write(&config, text)?;
    let mut command = Command::new("nginx");
    command
        .arg("-c")
        .arg(config)
        .arg("-e")
        .arg(folder.join("error.log"));
    command.stdin(Stdio::null());
    Ok(command)
}

/// Its workers accept in turn.
pub(super) fn accept_in_turn(folder: &Path) -> Result<()> {
    let config = folder.join("nginx.conf");
    let text = std::fs::read_to_string(&config)?;
    ensure!(text.contains("events {"), "{text}");
    let text = text.replace("events {", "events { accept_mutex on;");
    Ok(std::fs::write(&config, text)?)
}

/// Bytes that no compression and no repetition makes up for.
pub(super) fn body(folder: &Path, len: usize) -> Result<Vec<u8>> {
    let mut state = 1_u64;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    })
    .take(len)
    .collect();
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("body"), &bytes)?;
    Ok(bytes)
}
