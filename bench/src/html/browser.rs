//! A browser without a window, through chromedriver's WebDriver (W3C Recommendation of 2018): one request
//! a connection, JSON both ways.
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(super) struct Browser {
    driver: Driver,
    session: String,
}

/// Ends with it.
struct Driver {
    child: Child,
    port: u16,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(doing: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Browser {
        doing,
        said: source.to_string(),
    }
}

impl Driver {
    fn start() -> Result<Driver> {
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::start("chromedriver (Debian: chromium-driver)"))?;
        let out = child.stdout.take();
        let mut driver = Driver { child, port: 0 };
        let said = out.map(BufReader::new).into_iter().flat_map(BufRead::lines);
        let port = said.map_while(std::io::Result::ok).find_map(|line| {
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        driver.port = port.ok_or_else(|| Error::Browser {
            doing: "start",
            said: "chromedriver did not say its port".into(),
        })?;
        Ok(driver)
    }

    fn request(&self, doing: &'static str, method: &str, path: &str, body: &str) -> Result<Value> {
        let cannot = failed(doing);
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(&cannot)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .map_err(&cannot)?;
        let answer = answer(stream).map_err(&cannot)?;
        let mut answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let value = answer["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(Error::Browser {
                doing,
                said: format!("{error}: {}", value["message"]),
            }),
            None => Ok(value),
        }
    }
}

fn answer(stream: TcpStream) -> std::io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer)?;
    Ok(answer)
}

impl Browser {
    /// With a profile of its own, so that nothing is known of any page.
    pub(super) fn start(profile: &Path) -> Result<Browser> {
        let driver = Driver::start()?;
        let flags = [
            "--headless=new".to_owned(),
            // It refuses to run as root otherwise; the page is our own.
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--window-size=1400,1300".to_owned(),
            format!("--user-data-dir={}", profile.display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            // Only a page that hangs takes so long.
            "timeouts": {"script": 300_000, "pageLoad": 300_000},
            "goog:chromeOptions": {"args": flags},
        }}});
        let session = driver.request("start", "POST", "/session", &wanted.to_string())?;
        let session = session["sessionId"].as_str().unwrap_or_default().to_owned();
        Ok(Browser { driver, session })
    }

    fn post(&self, doing: &'static str, verb: &str, body: &Value) -> Result<Value> {
        let path = format!("/session/{}/{verb}", self.session);
        self.driver.request(doing, "POST", &path, &body.to_string())
    }

    /// What the browser calls itself.
    pub(super) fn version(&self) -> Result<String> {
        let script = "return navigator.userAgent";
        let agent = self.run("tell its version", "sync", script)?;
        let agent = agent.as_str().unwrap_or_default();
        let its = agent.split(' ').find(|word| word.contains("Chrome"));
        Ok(its.unwrap_or("of unknown version").to_owned())
    }

    pub(super) fn open(&self, page: &Path) -> Result<()> {
        let url = format!("file://{}", page.display());
        self.post("open the page", "url", &json!({"url": url}))?;
        Ok(())
    }

    /// The value of a script; `how` is `sync`, or `async` for one that calls its last argument.
    pub(super) fn run(&self, doing: &'static str, how: &str, script: &str) -> Result<Value> {
        let body = json!({"script": script, "args": []});
        self.post(doing, &format!("execute/{how}"), &body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser then; killing the driver alone would leave it.
        let path = format!("/session/{}", self.session);
        let _ = self.driver.request("end", "DELETE", &path, "");
    }
}
