//! Signals, restarts, mistakes, secrets, and connections that nobody else may read.

use crate::{Place, ended};
use std::time::{Duration, Instant};
use vyre_test_postgres::{OWNER, Server, send};

/// Waits until so many units of a campaign are done.
fn until(server: &Server, place: &Place, units: u64) {
    let began = Instant::now();
    let done = "SELECT coalesce(sum(hi - lo), 0) FROM vyre.answer WHERE kind = 0 AND NOT void";
    while server.sql(&place.database, done).parse::<u64>().expect("a number") < units {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing moves");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn restart(server: &mut Server) {
    let place = Place::new(server);
    let part = ["ops.int.add", "ops.int.mul", "--seed", "7"];
    let alone: Vec<&str> =
        ["conform"].into_iter().chain(part).chain(["--backend", "bulk", "--in-process", "--state", "alone", "--json"]).collect();
    let told = place.json(&alone);
    let units = told["units"].as_u64().expect("a number");
    let create: Vec<&str> =
        ["campaign", "create", "c"].into_iter().chain(part).chain(["--device", "bulk", "--lease", "4", "--json"]).collect();
    place.json(&create);
    let work = ["campaign", "work", "c", "--backend", "bulk", "--in-process", "--jobs", "1", "--claim", "0.1"];
    let (one, other) = (place.start(&work), place.start(&work));
    until(server, &place, units / 8);
    // The server falls over in the middle of it all.
    server.restart_immediately();
    until(server, &place, units / 4);
    // One is told to end, and gives back what it holds. The other stands still meanwhile, so that it does not end first.
    send(other.id(), "STOP");
    send(one.id(), "TERM");
    let (code, out, err) = ended(one);
    assert!(code == 3 && out.contains("bulk: stopped") && err.contains("its finished units count"), "{code} {out}{err}");
    assert!(err.contains("nothing is lost, and it is tried again") && err.contains("is back"), "{err}");
    assert_eq!(
        server.sql(
            &place.database,
            "SELECT count(*) FROM vyre.span s JOIN vyre.worker w ON w.id = s.owner WHERE s.state = 1 AND w.state = 1"
        ),
        "0"
    );
    // One is killed, and what it holds is run by the next after its lease.
    send(other.id(), "KILL");
    assert_eq!(ended(other).0, -1);
    let (code, out, err) = place.vyre(&work);
    assert_eq!(code, 0, "{out}{err}");
    let (code, out, err) = place.vyre(&["diff", "alone", &format!("{}#c", place.url)]);
    assert_eq!(code, 0, "{out}{err}");
}

pub fn mistakes(server: &mut Server) {
    let place = Place::new(server);
    place.json(&["campaign", "create", "c", "ops.int.add:u32:wg=64", "--device", "bulk", "--json"]);
    server.sql(
        &place.database,
        "DO $$ BEGIN CREATE ROLE shy LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
    );
    // For this user a password is needed.
    let rules = server.data().join("pg_hba.conf");
    let before = std::fs::read_to_string(&rules).expect("it is there");
    std::fs::write(&rules, format!("local all shy scram-sha-256\n{before}")).expect("it is written");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let socket = place.url.split_once('@').expect("a user").1.to_string();
    let shy = |password: &str| format!("postgres://shy{password}@{socket}");
    let rows: [(&[&str], Option<String>, i32, &str); 15] = [
        (&["campaign", "status", "c"], Some(String::new()), 2, "does not begin with postgres://"),
        (&["campaign", "status", "c", "--db", "postgres://u:s3cret@127.0.0.1:1/db?sslmode=disable"], None, 2, "127.0.0.1:1"),
        (
            &["campaign", "work", "c", "--patience", "0", "--db", "postgres://u:s3cret@127.0.0.1:1/db?sslmode=disable"],
            None,
            2,
            "out of reach",
        ),
        (&["campaign", "status", "c", "--db", "postgres://u:s3cret@host:x/db"], None, 2, "write postgres://USER@HOST/DATABASE"),
        (&["report", "postgres://u:s3cret@127.0.0.1:1/db?sslmode=disable#c"], None, 2, "127.0.0.1:1"),
        (&["campaign", "status", "c"], Some(shy(":s3cret")), 2, "password authentication failed"),
        (&["campaign", "work", "c"], Some(shy(":s3cret")), 2, "does not let this user in"),
        (&["campaign", "work", "c"], Some(shy("")), 2, "password"),
        (&["campaign", "work", "c"], Some(shy(":right")), 2, "GRANT vyre_worker"),
        (&["campaign", "work", "d"], None, 2, "there is no campaign `d`"),
        (&["campaign", "status", "d"], None, 2, "there is no campaign `d`; there are: c"),
        (
            &["campaign", "work", "c", "--backend", "reference"],
            None,
            2,
            "has no use for the devices of this machine; it asks for bulk",
        ),
        (&["campaign", "create", "c", "--device", "bulk"], None, 2, "choose another name"),
        (&["campaign", "create", "x", "my.vyre", "--device", "bulk"], None, 2, "is a file of one machine"),
        (&["campaign", "create", "x", "--device", "bulk", "--device", "bulk"], None, 2, "two devices are called `bulk`"),
    ];
    for (args, url, code, says) in rows {
        let mut command = place.command(args);
        if let Some(url) = url {
            command.env("VYRE_DB", url);
        }
        let output = command.output().expect("vyre starts");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).to_string();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(says), "{args:?} does not say `{says}`: {said}");
        assert!(!said.contains("s3cret") && !said.contains("panicked"), "{args:?}: {said}");
    }
    let nowhere = place.command(&["campaign", "status", "c"]).env_remove("VYRE_DB").output().expect("vyre starts");
    assert!(String::from_utf8_lossy(&nowhere.stderr).contains("which database?"));
    // Who may work may work, and what is told and kept of it holds no password.
    server.sql(&place.database, "GRANT vyre_worker TO shy");
    let worked =
        place.command(&["campaign", "work", "c", "--in-process"]).env("VYRE_DB", shy(":right")).output().expect("vyre starts");
    assert!(worked.status.success(), "{}", String::from_utf8_lossy(&worked.stderr));
    let all = format!("{}#c", place.url.replacen(OWNER, &format!("{OWNER}:s3cret"), 1));
    let (code, out, err) = place.vyre(&["report", &all, "--html", "page.html", "--json"]);
    assert_eq!(code, 0, "{err}");
    let page = std::fs::read_to_string(place.path().join("page.html")).expect("it was written");
    assert!(!out.contains("s3cret") && !err.contains("s3cret") && !page.contains("s3cret"));
    // Another suite: what a worker of another version would meet.
    server.sql(&place.database, "UPDATE vyre.campaign SET spec = jsonb_set(spec, '{suite}', '\"0\"')");
    let (code, _, err) = place.vyre(&["campaign", "work", "c", "--in-process"]);
    assert!(code == 3 && err.contains("use the version that made the campaign"), "{err}");
    // What comes from the database names parts of the suite, and no file and no command.
    server.sql(&place.database, "UPDATE vyre.campaign SET spec = jsonb_set(spec, '{queries}', '[\"/etc/passwd.vyre\"]')");
    let (code, _, err) = place.vyre(&["campaign", "work", "c", "--in-process"]);
    assert!(code == 2 && err.contains("is a file of one machine"), "{err}");
    server.sql(&place.database, "UPDATE vyre.campaign SET spec = spec || '{\"backend\": \"exec:touch pwned\"}'");
    let (code, _, err) = place.vyre(&["campaign", "work", "c", "--in-process"]);
    assert!(code == 1 && err.contains("unknown field `backend`"), "{err}");
    std::fs::write(&rules, before).expect("it is written");
    server.sql("postgres", "SELECT pg_reload_conf()");
}

/// A server of its own, with a certificate that it has signed itself.
pub fn tls(_: &mut Server) {
    let mut server = Server::start(&[]);
    let place = Place::new(&server);
    place.json(&["campaign", "create", "c", "ops.int.add:u32:wg=64:boundary", "--device", "bulk", "--json"]);
    let (port, certificate) = server.encrypt();
    // Who does not encrypt is not let in from the network.
    let rules = server.data().join("pg_hba.conf");
    std::fs::write(&rules, "local all all trust\nhostssl all all 127.0.0.1/32 trust\n").expect("it is written");
    server.sql("postgres", "SELECT pg_reload_conf()");
    let url = |options: &str| format!("postgres://{OWNER}@localhost:{port}/{}?{options}", place.database);
    let said = |url: String| {
        let output = place.command(&["campaign", "status", "c"]).env("VYRE_DB", url).output().expect("vyre starts");
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).to_string())
    };
    let (code, text) = said(url("sslmode=disable"));
    assert!(code == Some(2) && text.contains("no encryption"), "{text}");
    let (code, text) = said(url("sslmode=require"));
    assert!(code == Some(2) && text.contains("certificate"), "nobody here trusts it: {text}");
    let trusted = url(&format!("sslmode=require&sslrootcert={}", certificate.display()));
    let (code, text) = said(trusted.clone());
    assert!(code == Some(0) && text.contains("0 of"), "{text}");
    let (code, text) = said(url(&format!("sslmode=verify-full&sslrootcert={}", certificate.display())));
    assert!(code == Some(0), "{text}");
    let (code, text) = said(url("sslmode=require&sslrootcert=/does/not/exist"));
    assert!(code == Some(2) && text.contains("/does/not/exist"), "{text}");
    // A certificate for another name is not that of the server.
    let other = trusted.replace("localhost", "127.0.0.2");
    assert_eq!(said(other).0, Some(2));
    let work = place.command(&["campaign", "work", "c", "--in-process"]).env("VYRE_DB", &trusted).output().expect("vyre starts");
    assert!(work.status.success(), "{}", String::from_utf8_lossy(&work.stderr));
}

pub fn cancel(server: &mut Server) {
    let place = Place::new(server);
    place.json(&["campaign", "create", "c", "ops.int", "--device", "bulk", "--lease", "1", "--json"]);
    let worker = place.start(&["campaign", "work", "c", "--in-process", "--claim", "0.1", "--jobs", "1"]);
    until(server, &place, 5);
    place.json(&["campaign", "cancel", "c", "--json"]);
    let (code, out, err) = ended(worker);
    assert!(code == 0 && out.contains("bulk: cancelled"), "{code} {out}{err}");
    let (_, out, _) = place.vyre(&["campaign", "status", "c"]);
    assert!(out.contains("cancelled"), "{out}");
    place.json(&["campaign", "cancel", "c", "--remove", "--json"]);
    assert_eq!(server.sql(&place.database, "SELECT (SELECT count(*) FROM vyre.span) + (SELECT count(*) FROM vyre.answer)"), "0");
}
