//! A real browser, through chromedriver's WebDriver (W3C Recommendation of 2018, sections 7–17):
//! one request a connection, JSON both ways.
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::Target;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Browser {
    /// Ends with it, and its browser too.
    _driver: Target,
    port: u16,
    session: String,
}

impl Browser {
    /// `dark`: as if the user preferred dark pages.
    pub(crate) fn start(scratch: &Path, dark: bool) -> Result<Browser> {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdout(Stdio::piped());
        let mut driver = Target::spawn_now(&mut command)?;
        let out = driver.child().stdout.take().context("its output")?;
        let port = BufReader::new(out)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                line.split_once("successfully on port ")
                    .map(|p| p.1.to_owned())
            })
            .context("chromedriver did not say its port")?;
        let mut browser = Browser {
            _driver: driver,
            port: port.trim_end_matches('.').parse()?,
            session: String::new(),
        };
        let profile = scratch.join("profile");
        let mut flags = vec![
            "--headless=new".to_owned(),
            // It refuses to run as root otherwise; the pages are our own.
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--window-size=1400,1300".to_owned(),
            format!("--user-data-dir={}", profile.display()),
        ];
        if dark {
            flags.push("--force-dark-mode".to_owned());
            flags.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            // Only a page that hangs takes so long.
            "timeouts": {"script": 120_000},
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let session = browser.request("POST", "/session", Some(&wanted))?;
        browser.session = session["sessionId"]
            .as_str()
            .context("no session")?
            .to_owned();
        Ok(browser)
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            ensure!(
                reader.read_line(&mut line)? > 0,
                "the answer to {path} is cut"
            );
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer)?;
        let mut answer: Value = serde_json::from_slice(&answer)?;
        let value = answer["value"].take();
        if let Some(error) = value["error"].as_str() {
            bail!("{path}: {error}: {}", value["message"]);
        }
        Ok(value)
    }

    fn of_session(&self, method: &str, verb: &str, body: &Value) -> Result<Value> {
        let path = format!("/session/{}/{verb}", self.session);
        self.request(method, &path, (method == "POST").then_some(body))
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) fn open_plain(&self, page: &Path) -> Result<()> {
        let url = format!("file://{}", page.display());
        self.of_session("POST", "url", &json!({"url": url}))?;
        Ok(())
    }

    /// Opens a page of ours and waits until its script is done with it.
    pub(crate) fn open(&self, page: &Path) -> Result<()> {
        self.open_plain(page)?;
        let ready = self.of_session(
            "POST",
            "execute/async",
            &json!({"args": [], "script": "
                const done = arguments[0];
                const root = document.documentElement;
                const look = () => root.dataset.ready && (done(root.dataset.ready), true);
                if (!look()) new MutationObserver(look).observe(root, { attributes: true });"}),
        )?;
        ensure!(ready == "yes", "the page's script ended with {ready}");
        Ok(())
    }

    /// The value of a script that returns one.
    pub(crate) fn run(&self, script: &str) -> Result<Value> {
        self.of_session(
            "POST",
            "execute/sync",
            &json!({"script": script, "args": []}),
        )
        .with_context(|| script.to_owned())
    }

    pub(crate) fn text(&self, script: &str) -> Result<String> {
        let value = self.run(script)?;
        Ok(value
            .as_str()
            .with_context(|| format!("{script}: {value}"))?
            .to_owned())
    }

    pub(crate) fn number(&self, script: &str) -> Result<f64> {
        let value = self.run(script)?;
        value.as_f64().with_context(|| format!("{script}: {value}"))
    }

    /// As a person types.
    pub(crate) fn type_keys(&self, keys: &str) -> Result<()> {
        let each = |c: char| {
            [
                json!({"type": "keyDown", "value": c}),
                json!({"type": "keyUp", "value": c}),
            ]
        };
        let actions: Vec<Value> = keys.chars().flat_map(each).collect();
        let body = json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]});
        self.of_session("POST", "actions", &body).map(drop)
    }

    /// Moves the mouse to a place of the window; `then` are further actions there.
    pub(crate) fn mouse(&self, x: f64, y: f64, then: &[Value]) -> Result<()> {
        let mut actions =
            vec![json!({"type": "pointerMove", "duration": 0, "x": x.round(), "y": y.round()})];
        actions.extend_from_slice(then);
        let body = json!({"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}
        ]});
        self.of_session("POST", "actions", &body).map(drop)
    }

    pub(crate) fn click(&self, x: f64, y: f64) -> Result<()> {
        let press = json!({"type": "pointerDown", "button": 0});
        let release = json!({"type": "pointerUp", "button": 0});
        self.mouse(x, y, &[press, release])
    }

    pub(crate) fn screenshot(&self, to: &Path) -> Result<()> {
        let picture = self.of_session("GET", "screenshot", &Value::Null)?;
        let text = picture.as_str().context("no picture")?;
        std::fs::write(to, from_base64(text)?)?;
        println!("screenshot: {}", to.display());
        Ok(())
    }

    /// Whatever the page wrote to its console, and what the browser complained of.
    pub(crate) fn complaints(&self) -> Result<Vec<String>> {
        let log = self.of_session("POST", "se/log", &json!({"type": "browser"}))?;
        let entries = log.as_array().cloned().unwrap_or_default();
        Ok(entries.iter().map(ToString::to_string).collect())
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser then; killing the driver alone would leave it.
        let _ = self.request("DELETE", &format!("/session/{}", self.session), None);
    }
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut word, mut bits) = (0u32, 0);
    for c in text.bytes().filter(|c| *c != b'=') {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => bail!("{other} in base64"),
        };
        (word, bits) = (word << 6 | u32::from(six), bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    Ok(bytes)
}
