//! `abide policy`: why an order's next attempt is when it is, and what the next days look like.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::exit::{self, Exit, Stop};
use crate::orders::{text, with_distance};
use crate::output::{self, Format};
use crate::remote::{Remote, percent};
use crate::{files, when};

/// Cells of a bar on a terminal: two days in half hours.
const CELLS: usize = 96;

/// Hours that a plot shows.
const HOURS: u64 = 48;

const HOUR_MS: u64 = 3_600_000;

/// Look at the decisions of a running service.
#[derive(Args, Clone, Debug)]
#[command(after_help = exit::HELP)]
pub(crate) struct Policy {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    remote: Remote,
    /// The form of the result
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Format,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Why the next attempt of an order is when it is
    Explain {
        /// The order
        #[arg(long, value_name = "ID")]
        order: String,
    },
    /// The attempts of the next two days, if each of them fails
    Plot {
        /// The order
        #[arg(long, value_name = "ID")]
        order: String,
        /// Draw into this file instead
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}

/// Runs the command.
pub(crate) async fn run(args: &Policy) -> Exit {
    match act(args).await {
        Ok(()) => Exit::Done,
        Err(stop) => output::fail(&stop, args.output),
    }
}

async fn act(args: &Policy) -> Result<(), Stop> {
    let service = args.remote.connect()?;
    let (Command::Explain { order } | Command::Plot { order, .. }) = &args.command;
    let path = format!("/v1/orders/{}/explain?hours={HOURS}", percent(order));
    let explanation = service.get(&path).await?;
    if args.output == Format::Json {
        return output::print_json(&explanation);
    }
    let now = when::now_ms();
    match &args.command {
        Command::Explain { .. } => output::print(&explain(&explanation, now)),
        Command::Plot { svg: None, .. } => output::print(&bars(&forecast(&explanation), now)),
        Command::Plot {
            svg: Some(file), ..
        } => Ok(files::replace(
            "--svg",
            file,
            draw(order, &forecast(&explanation), now).as_bytes(),
        )?),
    }
}

fn explain(explanation: &Value, now: u64) -> String {
    let mut out = String::new();
    for (name, field) in [
        ("next attempt", "next_attempt_at"),
        ("renewal", "renewal_at"),
    ] {
        let time = with_distance(&explanation[field], now);
        let time = if time.is_empty() { "none" } else { &time };
        writeln!(out, "{name:<13} {time}").expect("a String takes all");
    }
    out.push_str("because\n");
    for step in explanation["steps"].as_array().into_iter().flatten() {
        writeln!(out, "  {}  {}", text(&step["at"]), text(&step["text"]))
            .expect("a String takes all");
    }
    let endpoints = explanation["endpoints"].as_array();
    if let Some(endpoints) = endpoints.filter(|endpoints| !endpoints.is_empty()) {
        out.push_str("a new transaction goes to the first endpoint that matches\n");
        for endpoint in endpoints {
            let matches = match endpoint["matches"].as_bool() {
                Some(true) => "yes",
                _ => "no",
            };
            let (url, why) = (text(&endpoint["url"]), text(&endpoint["why"]));
            writeln!(out, "  {matches:<3} {url}  {why}").expect("a String takes all");
        }
    }
    out.push_str("if each attempt fails, the next ones are\n");
    for (earliest, latest) in forecast(explanation) {
        writeln!(out, "  {}", span(earliest, latest, now)).expect("a String takes all");
    }
    out
}

fn span(earliest: u64, latest: u64, now: u64) -> String {
    let first = format!(
        "{} ({})",
        when::utc(earliest),
        when::distance(now, earliest)
    );
    match latest > earliest {
        true => format!("{first} to {}", when::utc(latest)),
        false => first,
    }
}

/// The earliest and the latest time of each attempt.
fn forecast(explanation: &Value) -> Vec<(u64, u64)> {
    let time = |value: &Value| when::from_rfc3339(value.as_str()?);
    explanation["forecast"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| Some((time(&one["earliest"])?, time(&one["latest"])?)))
        .collect()
}

/// The part of the two days that a span takes, as cells.
fn cells(earliest: u64, latest: u64, now: u64) -> Option<(usize, usize)> {
    let cell_ms = HOURS * HOUR_MS / CELLS as u64;
    let place = |at: u64| usize::try_from(at.saturating_sub(now) / cell_ms).unwrap_or(CELLS);
    let (first, last) = (place(earliest), place(latest).min(CELLS - 1));
    (first < CELLS).then_some((first, last.max(first)))
}

fn bars(forecast: &[(u64, u64)], now: u64) -> String {
    let mut out = String::from("now");
    for hours in (12..=HOURS).step_by(12) {
        let label = format!("+{hours} h");
        let width = CELLS / (HOURS as usize / 12);
        let used = if hours == 12 { 3 } else { 0 };
        write!(out, "{label:>width$}", width = width - used).expect("a String takes all");
    }
    out.push('\n');
    let mut axis = vec!['·'; CELLS];
    for (at, cell) in axis.iter_mut().enumerate() {
        if at % (CELLS / 8) == 0 {
            *cell = '|';
        }
    }
    out.extend(axis.iter());
    out.push('\n');
    for &(earliest, latest) in forecast {
        if let Some((first, last)) = cells(earliest, latest, now) {
            out.extend(std::iter::repeat_n(' ', first));
            out.extend(std::iter::repeat_n('█', last - first + 1));
            writeln!(out, " {}", when::distance(now, earliest)).expect("a String takes all");
        }
    }
    if forecast.is_empty() {
        out.push_str("no attempt is to come in the next two days\n");
    }
    out
}

fn draw(order: &str, forecast: &[(u64, u64)], now: u64) -> String {
    const WIDTH: u64 = 960;
    const MARGIN: u64 = 40;
    const ROW: u64 = 22;
    const TOP: u64 = 60;
    let shown: Vec<_> = forecast
        .iter()
        .filter(|(earliest, _)| *earliest < now + HOURS * HOUR_MS)
        .collect();
    let height = TOP + ROW * (shown.len().max(1) as u64) + MARGIN;
    let x = |at: u64| {
        let part = at.saturating_sub(now).min(HOURS * HOUR_MS);
        MARGIN + part * (WIDTH - 2 * MARGIN) / (HOURS * HOUR_MS)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Attempts of order {}</title>\n\
         <text x=\"{MARGIN}\" y=\"20\">Order {}: attempts from {} on, if each of them fails</text>\n",
        escaped(order),
        escaped(order),
        when::utc(now)
    );
    for hours in (0..=HOURS).step_by(6) {
        let at = x(now + hours * HOUR_MS);
        writeln!(
            svg,
            "<line x1=\"{at}\" y1=\"{}\" x2=\"{at}\" y2=\"{}\" stroke=\"#ccc\"/>\
             <text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">+{hours} h</text>",
            TOP - 10,
            height - 20,
            TOP - 15
        )
        .expect("a String takes all");
    }
    for (row, (earliest, latest)) in shown.iter().enumerate() {
        let y = TOP + ROW * row as u64;
        let (from, to) = (x(*earliest), x(*latest));
        writeln!(
            svg,
            "<rect x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"14\" fill=\"#2a6fbb\">\
             <title>{}</title></rect>",
            (to - from).max(3),
            span(*earliest, *latest, now)
        )
        .expect("a String takes all");
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half an hour is a cell.
    #[test]
    fn a_bar_is_where_its_time_is() {
        assert_eq!(cells(0, 0, 0), Some((0, 0)));
        assert_eq!(cells(HOUR_MS, 2 * HOUR_MS, 0), Some((2, 4)));
        assert_eq!(cells(47 * HOUR_MS, 60 * HOUR_MS, 0), Some((94, 95)));
        assert_eq!(cells(48 * HOUR_MS, 49 * HOUR_MS, 0), None);
        let text = bars(&[(4 * HOUR_MS, 4 * HOUR_MS)], 0);
        assert!(text.ends_with("        █ in 4 h\n"), "{text}");
        assert!(bars(&[], 0).contains("no attempt"));
    }

    #[test]
    fn a_drawing_is_well_formed_and_quotes_nothing() {
        let svg = draw(
            "<a&\">",
            &[(HOUR_MS, 2 * HOUR_MS), (50 * HOUR_MS, 51 * HOUR_MS)],
            0,
        );
        assert!(svg.contains("&lt;a&amp;&quot;&gt;") && !svg.contains("<a&"));
        assert_eq!(svg.matches("<rect").count(), 1);
        // 40 + 880 / 48.
        assert!(svg.contains("<rect x=\"58\""), "{svg}");
    }
}
