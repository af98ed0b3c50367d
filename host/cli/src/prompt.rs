//! Secrets that a person types.

use std::io::IsTerminal;

use zeroize::Zeroizing;

use crate::exit::Stop;

/// Asks for a secret where a person can answer.
pub(crate) fn secret(option: &str, what: &str) -> Result<Zeroizing<Vec<u8>>, Stop> {
    if !std::io::stdin().is_terminal() {
        return Err(Stop::usage(format!(
            "{option} is missing, and there is no terminal to ask for {what}; give it as \
             {option} env:VARIABLE, file:PATH or stdin"
        )));
    }
    let answer = rpassword::prompt_password(format!("{what}: "))
        .map(Zeroizing::new)
        .map_err(|error| {
            Stop::host(format!("{what} cannot be read from the terminal ({error})"))
        })?;
    if answer.is_empty() {
        return Err(Stop::usage(format!("{what} is empty")));
    }
    Ok(Zeroizing::new(answer.as_bytes().to_vec()))
}
