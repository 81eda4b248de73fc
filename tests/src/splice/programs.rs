//! Programs as they are, with their own clients.
use super::scene::{Done, dir, splice, splice_python, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{counts, programs};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

/// A program that says its port through the pipe $DIR/port; then what its clients do.
const SAYS_PORT: &str = "mkfifo \"$DIR/port\"\n$SERVER & server=$!\nread port < \"$DIR/port\"\n\
    $CLIENT $port; code=$?\nkill $server; wait $server; exit $code\n";

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Nearly everything took the short cut, and everything is accounted for.
fn expect_joined(done: &Done, connections: u64) -> Result<()> {
    done.expect_code(0)?;
    done.expect_adds_up()?;
    ensure!(
        done.count("connections")? >= connections
            && done.count("direct_messages")? > done.count("tcp_messages")?,
        "{}",
        done.summary
    );
    Ok(())
}

/// A value comes back as it was, and its own benchmark ends without an error, pipelined or not.
pub(super) fn redis() -> Result<()> {
    redis_with(&[]).map(drop)
}

pub(super) fn redis_with(options: &[&str]) -> Result<Done> {
    let script = r#"
redis-server --port $PORT --bind 127.0.0.1 --save '' --appendonly no --dir "$DIR" > "$DIR/log" & server=$!
until redis-cli -p $PORT ping > /dev/null 2>&1; do :; done
head -c 3000000 /dev/urandom | base64 -w 0 > "$DIR/value"
redis-cli -p $PORT -x set key < "$DIR/value" > /dev/null
redis-cli -p $PORT get key | head -c -1 | cmp - "$DIR/value"; same=$?
redis-benchmark -p $PORT -q -t ping,set,get,lrange_100 -c 50 -n $REQUESTS > "$DIR/one" 2>&1; one=$?
redis-benchmark -p $PORT -q -t set,get -c 20 -P 16 -d 2000 -n $REQUESTS > "$DIR/many" 2>&1; many=$?
redis-cli -p $PORT shutdown nosave
wait $server
exit $((same + one + many))
"#;
    let port = free_port()?.to_string();
    let requests = counts().pick("5000", "500000");
    let environment = [
        ("DIR", text(dir())?),
        ("PORT", &port),
        ("REQUESTS", requests),
    ];
    let done = splice(options, script, &environment)?;
    expect_joined(&done, 200)?;
    for name in ["one", "many"] {
        let said = std::fs::read_to_string(dir().join(name))?;
        ensure!(
            said.contains("requests per second") && !said.to_lowercase().contains("error"),
            "{said}"
        );
    }
    Ok(done)
}

/// Client, proxy and web server: three programs, two connections each time.
pub(super) fn haproxy() -> Result<()> {
    haproxy_with(&[]).map(drop)
}

pub(super) fn haproxy_with(options: &[&str]) -> Result<Done> {
    let (front, back) = (free_port()?, free_port()?);
    let config = format!(
        "defaults\n  mode http\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n\
         frontend in\n  bind 127.0.0.1:{front}\n  default_backend web\n\
         backend web\n  server a 127.0.0.1:{back}\n"
    );
    std::fs::write(dir().join("haproxy.cfg"), config)?;
    let script = r#"
mkfifo "$DIR/port"
python3 "$PROGRAMS/web.py" $BACK "$DIR/port" & web=$!
read port < "$DIR/port"
haproxy -W -f "$DIR/haproxy.cfg" & proxy=$!
python3 "$PROGRAMS/web_client.py" $FRONT $REQUESTS; code=$?
kill $proxy; wait $proxy
kill $web; wait $web
exit $code
"#;
    let folder = programs().join("splice");
    let (front, back) = (front.to_string(), back.to_string());
    let environment = [
        ("DIR", text(dir())?),
        ("FRONT", front.as_str()),
        ("BACK", back.as_str()),
        ("PROGRAMS", text(&folder)?),
        ("REQUESTS", counts().pick("150", "5000")),
    ];
    let done = splice_python(options, script, &environment)?;
    expect_joined(&done, 20)?;
    Ok(done)
}

pub(super) fn asyncio() -> Result<()> {
    asyncio_with(&[]).map(drop)
}

pub(super) fn asyncio_with(options: &[&str]) -> Result<Done> {
    let folder = programs().join("splice");
    let python = |name: &str| format!("python3 {}/{name}", folder.display());
    let server = format!("{} {}/port", python("asyncio_server.py"), dir().display());
    let client = format!(
        "{} {}",
        python("asyncio_client.py"),
        counts().pick(200, 5000)
    );
    let environment = [
        ("DIR", text(dir())?),
        ("SERVER", &server),
        ("CLIENT", &client),
    ];
    let done = splice_python(options, SAYS_PORT, &environment)?;
    expect_joined(&done, 200)?;
    Ok(done)
}

/// A Go client, with its own poller, at the plain server.
pub(super) fn go() -> Result<()> {
    let client = built_by_go("client.go")?;
    let server = super::scene::program("server")?;
    let server = format!("{} 127.0.0.1 {}/port", server.display(), dir().display());
    let client = format!("{} {}", client.display(), counts().pick(200, 20_000));
    let environment = [
        ("DIR", text(dir())?),
        ("SERVER", &server),
        ("CLIENT", &client),
    ];
    let done = splice(&[], SAYS_PORT, &environment)?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    // What is sent to a client that has shut its writing down takes TCP, which is most of it.
    ensure!(
        done.count("connections")? >= 200
            && done.count("direct_messages")? > 0
            && done.count("tcp_peer_gone")? > 0,
        "{}",
        done.summary
    );
    Ok(())
}

fn built_by_go(source: &str) -> Result<PathBuf> {
    let folder = hopscope_tests::paths::built_programs();
    std::fs::create_dir_all(&folder)?;
    let out = folder.join(source.trim_end_matches(".go").to_owned() + "-go");
    let go = hopscope_tests::requirement::go().context("no go")?;
    command(
        Command::new(go)
            .env("GOCACHE", folder.join("go-cache"))
            .env("GO111MODULE", "off")
            .args(["build", "-o"])
            .arg(&out)
            .arg(programs().join("splice").join(source)),
    )?
    .expect_code(0)?;
    Ok(out)
}
