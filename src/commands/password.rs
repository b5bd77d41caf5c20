//! `loadline password`: makes a line for the list of cameras that may upload blocks, or the hash of a token for `[[access]]`. Main function: [`run`].

use std::io::Read;

use anyhow::Context;
use serde_json::json;

use super::output::{note, print, print_json};
use super::{Failure, Status};
use crate::cli::PasswordArguments;
use crate::recorder::access::{TOKEN_CHARACTERS_MIN, TokenHash, random_token};
use crate::recorder::inbox::check_camera;
use crate::recorder::upload::{Hashed, random_password};

/// Largest size of a password that is read, in bytes.
const BYTES_MAX: u64 = 1_000;

/// Makes a password or token, or reads one from standard input, and prints the line with its hash.
///
/// # Errors
/// [`Failure::Usage`] for an invalid name or a missing password.
pub fn run(arguments: &PasswordArguments, is_json: bool) -> Result<Status, Failure> {
    let Some(camera) = &arguments.camera else { return make_token(arguments, is_json) };
    check_camera(camera).map_err(Failure::usage)?;
    let password = if arguments.stdin { read()? } else { random_password().map_err(Failure::Broken)? };
    let line = format!("{camera} {}", Hashed::new(&password).map_err(Failure::Broken)?.text());
    if is_json {
        let told = (!arguments.stdin).then_some(&password);
        print_json(&json!({ "camera": camera, "password": told, "line": line }))?;
        return Ok(Status::Valid);
    }
    if !arguments.stdin {
        note(&format!("password of {camera}, which is shown only now: {password}"));
    }
    print(&format!("{line}\n"))?;
    Ok(Status::Valid)
}

fn make_token(arguments: &PasswordArguments, is_json: bool) -> Result<Status, Failure> {
    let token = if arguments.stdin { read()? } else { random_token().map_err(Failure::Broken)? };
    if token.chars().count() < TOKEN_CHARACTERS_MIN || token.contains(char::is_whitespace) {
        let must = format!("a token has {TOKEN_CHARACTERS_MIN} characters or more and no space");
        return Err(Failure::refused(format!(
            "standard input is no token: {must}; leave --stdin out to have one made"
        )));
    }
    let hash = TokenHash::of(&token).text();
    if is_json {
        let told = (!arguments.stdin).then_some(&token);
        print_json(&json!({ "token": told, "token_hash": hash }))?;
        return Ok(Status::Valid);
    }
    if !arguments.stdin {
        note(&format!("token, which is shown only now: {token}"));
    }
    print(&format!("token_hash = \"{hash}\"\n"))?;
    Ok(Status::Valid)
}

fn read() -> Result<String, Failure> {
    let mut password = String::new();
    let read = std::io::stdin().lock().take(BYTES_MAX).read_to_string(&mut password);
    read.context("standard input: no password can be read").map_err(Failure::usage)?;
    let password = password.trim_end_matches(['\r', '\n']);
    if password.is_empty() || password.contains(['\r', '\n', '\0']) {
        let remedy = "write one line, as in: printf %s PASSWORD | loadline password CAMERA --stdin";
        return Err(Failure::refused(format!("standard input is not one password; {remedy}")));
    }
    Ok(password.to_owned())
}
