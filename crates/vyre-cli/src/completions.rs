//! `vyre completions` and `vyre man`: what shells and `man` know about the command, made from its own description.

use crate::{Failure, command, print, print_bytes, write_file};
use clap_complete::Shell;
use clap_mangen::Man;
use serde_json::json;
use std::path::PathBuf;

/// Write the completions of a shell to standard output.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  vyre completions bash > ~/.local/share/bash-completion/completions/vyre
  vyre completions zsh > ~/.zfunc/_vyre                where ~/.zfunc is in $fpath
  vyre completions fish > ~/.config/fish/completions/vyre.fish")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
    /// One JSON object with the text
    #[arg(long)]
    pub json: bool,
}

pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut command = command(WIDTH);
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "vyre", &mut text);
    match args.json {
        true => print(&format!("{}\n", json!({ "shell": args.shell.to_string(), "text": String::from_utf8_lossy(&text) }))),
        false => print_bytes(&text),
    }
    Ok(())
}

/// Write a manual page to standard output, or all of them to a folder.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  vyre man | man -l -                        the page of the whole command
  vyre man run | man -l -                    the page of `vyre run`
  vyre man --all ~/.local/share/man/man1     every page, for `man vyre` and `man vyre-run`")]
pub struct ManArgs {
    /// The command; without it, the page of `vyre` itself
    #[arg(value_name = "COMMAND")]
    of: Option<String>,
    /// Write every page into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "of")]
    all: Option<PathBuf>,
    /// One JSON object per page
    #[arg(long)]
    pub json: bool,
}

/// Columns for which text is laid out that is not shown on this terminal.
const WIDTH: usize = 100;

pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let pages = pages()?;
    if let Some(folder) = &args.all {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::Usage(format!("cannot make the folder {}: {error}", folder.display())))?;
        for (name, page) in &pages {
            let file = folder.join(format!("{name}.1"));
            write_file(&file, page, &[])?;
            if args.json {
                print(&format!("{}\n", json!({ "page": name, "file": file })));
            }
        }
        return Ok(());
    }
    let wanted = args.of.as_ref().map_or_else(|| "vyre".into(), |name| format!("vyre-{name}"));
    let Some((name, page)) = pages.iter().find(|(name, _)| *name == wanted) else {
        let known: Vec<&str> = pages.iter().filter_map(|(name, _)| name.strip_prefix("vyre-")).collect();
        return Err(Failure::Usage(format!("there is no command `{}`; the commands are {}", &wanted[5..], known.join(", "))));
    };
    match args.json {
        true => print(&format!("{}\n", json!({ "page": name, "text": String::from_utf8_lossy(page) }))),
        false => print_bytes(page),
    }
    Ok(())
}

/// Every page, by name: `vyre`, `vyre-run`, …
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut whole = command(WIDTH);
    whole.build();
    let subcommands = whole.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help");
    let named = subcommands.map(|inner| (format!("vyre-{}", inner.get_name()), inner));
    std::iter::once(("vyre".to_string(), &whole))
        .chain(named)
        .map(|(name, command)| {
            let page = page(command).map_err(|error| Failure::Usage(format!("the page {name} cannot be made: {error}")))?;
            Ok((name, page))
        })
        .collect()
}

fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(notes(&after).into_bytes());
    Ok(page)
}

/// What stands after the options, as it is laid out: `man` would fill the lines of the examples.
fn notes(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let escaped = text.lines().map(|line| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        // A line that begins so would be a request.
        if line.starts_with(['.', '\'']) { format!("\\&{line}\n") } else { format!("{line}\n") }
    });
    format!(".SH NOTES\n.nf\n{}.fi\n", escaped.collect::<String>())
}
