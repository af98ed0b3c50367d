//! The program `abide`: certificate enrollment over CMP on a command line. What a
//! CA sends is read by a WebAssembly component without any power of its own; this
//! program gives it a store, the way to the CA and the keys, and waits for it.

mod config;
mod demo;
mod enroll;
mod exit;
mod gateway;
mod inspect;
mod interrupt;
mod manual;
mod mock_ca;
mod orders;
mod output;
mod policy;
mod prompt;
mod remote;
mod serve;
mod services;
mod shards;
mod store;
mod table;
mod tasks;
mod transactions;
mod zombies;

use std::process::ExitCode;

use abide_service::input::{der, files, names, pem, secret, text};
use abide_service::{paths, when, words};
use clap::{Parser, Subcommand};

use exit::{Exit, Stop};
use output::Format;

/// Obtain certificates over CMP (RFC 9810, 9483, 9811).
#[derive(Parser, Debug)]
#[command(name = "abide", version, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Enroll(Box<enroll::Enroll>),
    Transactions(transactions::Transactions),
    Store(store::Store),
    Serve(serve::Serve),
    Gateway(Box<gateway::Gateway>),
    Orders(orders::Orders),
    Tasks(tasks::Tasks),
    Zombies(zombies::Zombies),
    Policy(policy::Policy),
    Shards(shards::Shards),
    Config(config::Config),
    Inspect(inspect::Inspect),
    MockCa(mock_ca::MockCa),
    Demo(demo::Demo),
    Completions(manual::Completions),
    Manual(manual::Manual),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // One thread: a command does one thing at a time, and threads take time to start. A service
    // does many.
    let mut builder = match cli.command {
        Command::Serve(_) | Command::Gateway(_) => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let exit = match builder.enable_all().build() {
        Ok(runtime) => runtime.block_on(run(cli.command)),
        Err(error) => {
            let stop = Stop::host(format!("this machine gives abide no event loop ({error})"));
            output::fail(&stop, Format::Text)
        }
    };
    ExitCode::from(exit.code())
}

async fn run(command: Command) -> Exit {
    match command {
        Command::Enroll(args) => enroll::run(&args).await,
        Command::Transactions(args) => transactions::run(&args).await,
        Command::Serve(args) => serve::run(&args).await,
        Command::Store(args) => store::run(&args).await,
        Command::Gateway(args) => gateway::run(&args).await,
        Command::Orders(args) => orders::run(&args).await,
        Command::Tasks(args) => tasks::run(&args).await,
        Command::Zombies(args) => zombies::run(&args).await,
        Command::Policy(args) => policy::run(&args).await,
        Command::Shards(args) => shards::run(&args).await,
        Command::Config(args) => config::run(&args).await,
        Command::Inspect(args) => inspect::run(&args).await,
        Command::MockCa(args) => mock_ca::run(&args).await,
        Command::Demo(args) => demo::run(&args).await,
        Command::Completions(args) => manual::completions(&args),
        Command::Manual(args) => manual::manual(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_spellings_of_openssl_are_understood() {
        for line in [
            "abide enroll --cmd p10cr --server http://127.0.0.1:1/pkix/ --recipient /CN=CA --ref r \
             --secret pass:s --csr a --trusted b --certout c --chainout d --store e",
            "abide enroll --cmd ir --server 127.0.0.1:1 --cert a --key b --keypass env:X \
             --extracerts c d --trusted e f --untrusted g --subject /CN=x --newkey h \
             --implicit-confirm --resume --output json",
            "abide transactions list --store x --output json",
            "abide transactions show 00ff",
            "abide inspect --output json FILE",
            "abide inspect - --verify --secret pass:x",
            "abide mock-ca --dir d --listen 127.0.0.1:0 --ref r --secret pass:s --poll-count 2 \
             --check-after 1 --implicit-confirm --repeat refuse --path /pkix/ \
             --p10cr-cert-req-id -1",
            "abide demo",
            "abide completions bash",
            "abide manual --to man",
            "abide store backup --to x --store y --keys z",
            "abide store restore --from x",
            "abide store check --output json",
            "abide serve --config abide.toml --log json",
            "abide gateway --listen 127.0.0.1:0 --upstream http://ca/pkix/ --upstream http://b/ \
             --admin 127.0.0.1:0 --require-protection --allow ir,cr --rate-limit 60/10 \
             --by-address --trusted root.pem --secret 3078=env:X --trusted-hop 10.0.0.0/8",
            "abide gateway --config gateway.toml --log json",
            "abide gateway --schema",
            "abide config check --config x",
            "abide config schema",
            "abide orders create --subject /CN=a --sans a.example,b --key-kind ec-p384 --key k",
            "abide orders create --csr a.csr --issuer x --wait",
            "abide orders list --state ACTIVE --account a --output json --url http://x:1",
            "abide orders cancel id --why no",
            "abide tasks replay id",
            "abide orders cancel id --force",
            "abide zombies list",
            "abide zombies hydrate --order id --apply --force",
            "abide zombies hydrate --from 2026-06-01T00:00:00Z --to 2026-06-02T00:00:00Z",
            "abide shards owner --account prod",
            "abide shards route --issuer x --account prod --origin deck --config abide.toml",
            "abide config import gate.yml",
            "abide policy plot --order id --svg x.svg",
        ] {
            Cli::try_parse_from(line.split_whitespace()).expect(line);
        }
    }

    #[test]
    fn contradictions_are_bad_usage() {
        for line in [
            "abide enroll --cmd ir",
            "abide enroll --cmd ccr --server x",
            "abide enroll --cmd ir --server ftp://x",
            "abide enroll --cmd ir --server x --cert a",
            "abide enroll --cmd ir --server x --min-poll 0",
            "abide enroll --cmd ir --server x --pbm-iterations 99",
            "abide transactions show nothex",
            "abide zombies hydrate",
            "abide zombies hydrate --from 2026-06-01T00:00:00Z",
            "abide zombies hydrate --from x --to y",
            "abide inspect x --secret pass:x",
            "abide gateway",
            "abide gateway --config x --upstream http://ca/",
            "abide gateway --upstream http://ca/ --rate-limit 60",
        ] {
            let error = Cli::try_parse_from(line.split_whitespace()).expect_err(line);
            assert_eq!(error.exit_code(), i32::from(Exit::Usage.code()), "{line}");
        }
    }
}
