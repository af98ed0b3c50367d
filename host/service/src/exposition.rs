//! How counters are told to who collects them.

use std::collections::BTreeSet;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The form of the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Prometheus' own text format, which everything reads.
    Text,
    /// OpenMetrics, for who asks for it.
    OpenMetrics,
}

impl Form {
    /// The form that an `Accept` header asks for.
    pub fn wanted(accept: Option<&str>) -> Self {
        match accept.is_some_and(|accept| accept.contains("application/openmetrics-text")) {
            true => Self::OpenMetrics,
            false => Self::Text,
        }
    }

    /// All counters of a registry.
    pub fn text(self, registry: &Registry) -> String {
        let mut text = String::new();
        // A String takes all.
        let _ = encode(&mut text, registry);
        match self {
            Form::OpenMetrics => text,
            Form::Text => plain(&text),
        }
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The text format of Prometheus from that of OpenMetrics. There a counter is described by the
/// name of its samples, and nothing marks the end.
fn plain(text: &str) -> String {
    let described = |line: &str, word: &str| {
        let rest = line.strip_prefix("# ")?.strip_prefix(word)?;
        let (name, rest) = rest.trim_start().split_once(' ')?;
        Some((name.to_owned(), rest.to_owned()))
    };
    let counters: BTreeSet<String> = text
        .lines()
        .filter_map(|line| described(line, "TYPE "))
        .filter(|(_, kind)| kind == "counter")
        .map(|(name, _)| name)
        .collect();
    let mut out = String::with_capacity(text.len());
    for line in text.lines().filter(|line| *line != "# EOF") {
        let about = ["HELP ", "TYPE "].into_iter().find_map(|word| {
            let (name, rest) = described(line, word)?;
            counters
                .contains(&name)
                .then(|| format!("# {word}{name}_total {rest}"))
        });
        out.push_str(about.as_deref().unwrap_or(line));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the two descriptions: a counter `x` has samples `x_total`, and only the older format
    /// says so in its description.
    #[test]
    fn counters_are_described_by_the_names_of_their_samples() {
        let open = "# HELP a_orphans Lost.\n# TYPE a_orphans counter\na_orphans_total 2\n\
                    # HELP a_open Open.\n# TYPE a_open gauge\na_open 1\n# EOF\n";
        assert_eq!(
            plain(open),
            "# HELP a_orphans_total Lost.\n# TYPE a_orphans_total counter\na_orphans_total 2\n\
             # HELP a_open Open.\n# TYPE a_open gauge\na_open 1\n"
        );
        assert_eq!(Form::wanted(None), Form::Text);
        assert_eq!(Form::wanted(Some("*/*")), Form::Text);
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        assert_eq!(Form::wanted(Some(prometheus)), Form::OpenMetrics);
    }
}
