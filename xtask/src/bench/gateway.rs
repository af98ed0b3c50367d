//! `cargo xtask bench gateway`: requests per second and waiting time through `abide gateway` and
//! through nginx as a plain reverse proxy, in turns, before the same upstream and from the same
//! load generator. All share the machine, so only the ratio says something.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::setup;
use crate::shell::{capture, root, step, target_dir};

/// Turns of each: odd for a median.
const ROUNDS: usize = 5;

/// Seconds of load in each.
const SECONDS: u32 = 8;

/// Connections of the load generator, which has one thread: the machine has few cores.
const CONNECTIONS: u32 = 32;

/// The request: an ir of `openssl cmp` under a MAC.
const MESSAGE: &str = "guest/cmp/tests/vectors/messages/openssl-3.0-ir-pbm-1-ir.der";

/// One of those that are compared.
struct Contender {
    name: &'static str,
    port: u16,
    _process: Running,
    runs: Vec<Load>,
}

/// What one turn came to.
#[derive(Clone, Copy)]
struct Load {
    per_second: f64,
    p99_ms: f64,
}

/// A program that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn run() -> Result<ExitCode> {
    setup::proxies()?;
    super::build()?;
    let folder = target_dir().join("bench-gateway");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let script = script(&folder)?;
    let upstream = free_port()?;
    let _upstream = nginx(&folder, "upstream", &upstream_config(upstream))?;
    wait_for(upstream)?;
    let plain = free_port()?;
    let nginx = nginx(&folder, "proxy", &proxy_config(plain, upstream))?;
    wait_for(plain)?;
    let url = format!("http://127.0.0.1:{upstream}/pkix/");
    let (gateway, port) = gateway(&url, &[])?;
    let limits = ["--rate-limit", "1000000/1", "--by-address"];
    let (limited, limited_port) = self::gateway(&url, &limits)?;
    let contender = |name, port, process| Contender {
        name,
        port,
        _process: process,
        runs: Vec::new(),
    };
    let mut contenders = [
        contender("nginx", plain, nginx),
        contender("abide gateway", port, gateway),
        contender("abide gateway, limited", limited_port, limited),
    ];
    step("warming up");
    for contender in &contenders {
        load(&script, contender.port, 2)?;
    }
    for round in 1..=ROUNDS {
        step(format!("round {round} of {ROUNDS}"));
        for contender in &mut contenders {
            let run = load(&script, contender.port, SECONDS)?;
            contender.runs.push(run);
        }
    }
    report(&contenders);
    fs::remove_dir_all(&folder)?;
    Ok(ExitCode::SUCCESS)
}

fn report(contenders: &[Contender]) {
    let median = |contender: &Contender, of: fn(&Load) -> f64| {
        let mut all: Vec<f64> = contender.runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let rate = |contender: &Contender| median(contender, |run| run.per_second);
    println!("{CONNECTIONS} connections, medians of {ROUNDS} turns of {SECONDS} s:");
    for contender in contenders {
        println!(
            "{:<24} {:>8.0} requests/s   p99 {:>6.2} ms   {:>4.0} % of nginx",
            contender.name,
            rate(contender),
            median(contender, |run| run.p99_ms),
            100.0 * rate(contender) / rate(&contenders[0]),
        );
    }
}

/// What wrk sends.
fn script(folder: &Path) -> Result<PathBuf> {
    let path = folder.join("post.lua");
    let text = format!(
        "wrk.method = \"POST\"\n\
         wrk.headers[\"Content-Type\"] = \"application/pkixcmp\"\n\
         local file = assert(io.open({:?}, \"rb\"))\n\
         wrk.body = file:read(\"*a\")\n\
         file:close()\n",
        root().join(MESSAGE)
    );
    fs::write(&path, text)?;
    Ok(path)
}

fn load(script: &Path, port: u16, seconds: u32) -> Result<Load> {
    let text = capture(
        Command::new("wrk")
            .args(["-t", "1", "-c", &CONNECTIONS.to_string(), "--latency"])
            .args(["-d", &format!("{seconds}s"), "-s"])
            .arg(script)
            .arg(format!("http://127.0.0.1:{port}/pkix/")),
    )?;
    if text.contains("Non-2xx") || text.contains("Socket errors") {
        bail!("not every request was answered well:\n{text}");
    }
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(name))
            .map(str::trim)
    };
    let per_second = value("Requests/sec:").and_then(|number| number.parse().ok());
    Ok(Load {
        per_second: per_second.with_context(|| format!("no rate in:\n{text}"))?,
        p99_ms: value("99%")
            .and_then(milliseconds)
            .with_context(|| format!("no p99 in:\n{text}"))?,
    })
}

/// A time as wrk writes it: `850.00us`, `1.25ms`, `2.00s`.
fn milliseconds(text: &str) -> Option<f64> {
    let scale = [("us", 0.001), ("ms", 1.0), ("s", 1000.0)];
    scale.iter().find_map(|(unit, factor)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * factor)
    })
}

/// A CA that says the same to everybody, as fast as it can be said.
fn upstream_config(port: u16) -> String {
    let answer = "x".repeat(700);
    format!(
        "worker_processes 1;\nevents {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 100000000; default_type application/pkixcmp;\n\
         server {{ listen 127.0.0.1:{port}; location / {{ return 200 \"{answer}\"; }} }} }}\n"
    )
}

/// As its documentation has it for connections that are kept.
fn proxy_config(port: u16, upstream: u16) -> String {
    format!(
        "worker_processes auto;\nevents {{ worker_connections 1024; }}\n\
         http {{ access_log off; keepalive_requests 100000000; client_body_buffer_size 64k;\n\
         upstream ca {{ server 127.0.0.1:{upstream}; keepalive 128; \
         keepalive_requests 100000000; }}\n\
         server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://ca; \
         proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }} }}\n"
    )
}

fn nginx(folder: &Path, name: &str, config: &str) -> Result<Running> {
    let prefix = folder.join(name);
    fs::create_dir_all(&prefix)?;
    let mut text = format!("daemon off;\npid {0}/pid;\n", prefix.display());
    text.push_str(config);
    // Whatever it may have to keep for a while, it keeps here.
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}/{kind};\n", prefix.display()));
    let text = text.replacen("http {", &format!("http {{ {}", temporary.concat()), 1);
    fs::write(prefix.join("nginx.conf"), text)?;
    let child = Command::new("nginx")
        .arg("-p")
        .arg(&prefix)
        .args(["-c", "nginx.conf", "-e", "error.log"])
        .spawn()
        .context("nginx cannot be started")?;
    Ok(Running(child))
}

fn gateway(upstream: &str, options: &[&str]) -> Result<(Running, u16)> {
    let mut child = Command::new(target_dir().join("release/abide"))
        .args(["gateway", "--listen", "127.0.0.1:0", "--log-level", "warn"])
        .args(["--upstream", upstream])
        .args(options)
        .stdout(Stdio::piped())
        .spawn()
        .context("abide cannot be started")?;
    let stdout = child.stdout.take().context("a pipe was asked for")?;
    let running = Running(child);
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let port = line.trim().rsplit(':').next();
    let port = port.and_then(|port| port.parse().ok());
    Ok((
        running,
        port.with_context(|| format!("no port in {line:?}"))?,
    ))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait_for(port: u16) -> Result<()> {
    for _ in 0..100 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("nothing listens on port {port}")
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn times_of_wrk() {
        assert_eq!(milliseconds("850.00us"), Some(0.85));
        assert_eq!(milliseconds("1.25ms"), Some(1.25));
        assert_eq!(milliseconds("2.00s"), Some(2000.0));
        assert_eq!(milliseconds("fast"), None);
    }
}
