//! `vyre campaign` as users meet it: real processes, a real server, and devices that give bytes.

mod devices;
mod launchers;
mod trouble;

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use tempfile::TempDir;
use vyre_test_postgres::{OWNER, Server};

fn main() -> ExitCode {
    vyre_test_postgres::run(&[
        ("a_campaign_has_the_root_of_a_run_on_one_machine", devices::same_root),
        ("devices_are_shown_side_by_side", devices::matrix),
        ("a_page_refreshes_until_all_is_done", devices::watch),
        ("cases_that_end_the_worker_are_found_one_by_one", devices::case_by_case),
        ("workers_drain_and_survive_a_restart_of_the_server", trouble::restart),
        ("mistakes_are_told_without_secrets", trouble::mistakes),
        ("connections_are_encrypted_where_the_address_asks_for_it", trouble::tls),
        ("a_campaign_that_is_cancelled_sends_its_workers_home", trouble::cancel),
        ("shards_are_put_together", launchers::shards),
        ("launchers_are_right_as_far_as_this_machine_can_say", launchers::files),
    ])
}

/// A folder to be in, and a database.
struct Place {
    folder: TempDir,
    database: String,
    url: String,
}

impl Place {
    fn new(server: &Server) -> Place {
        let database = server.database();
        Place { folder: tempfile::tempdir().expect("a folder"), url: server.url(OWNER, &database), database }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vyre"));
        command.args(args).current_dir(self.path()).env("VYRE_DB", &self.url).stdin(Stdio::null());
        command
    }

    /// Exit status, standard output and standard error.
    fn vyre(&self, args: &[&str]) -> (i32, String, String) {
        let output = self.command(args).output().expect("vyre starts");
        let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    /// The same for what must succeed: its last line as JSON.
    fn json(&self, args: &[&str]) -> Value {
        let (code, out, err) = self.vyre(args);
        assert_eq!(code, 0, "{args:?}: {out}{err}");
        serde_json::from_str(out.lines().last().expect("a line")).expect("JSON")
    }

    fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("vyre starts")
    }
}

/// What a process said, once it has ended.
fn ended(child: Child) -> (i32, String, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("it writes UTF-8");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}
