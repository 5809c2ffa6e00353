//! What goes wrong with databases, and what users hear of it.

use crate::workers::{device, join, settings};
use crate::{Made, connect, range};
use postgres::{Client, NoTls};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use vyre_campaign::{Claimed, Db, DbError, Joined, Link, Settings, Status, Taken, create};
use vyre_test_postgres::{OWNER, Server};

static GO: AtomicBool = AtomicBool::new(false);

fn come(url: &str) -> Result<Joined<(Link, vyre_campaign::Heard)>, DbError> {
    let settings = Settings { patience: Duration::from_millis(200), ..settings("w") };
    Link::join(&Db::new(url)?, &settings, &device(), &GO, &|_| ())
}

fn said<T>(result: Result<T, DbError>) -> DbError {
    result.err().expect("it is refused")
}

/// What the role of workers may do on a database: three functions, and nothing else of the schema.
pub fn rights(server: &mut Server) {
    let made = Made::new(server, 10, 30.0, 0.0);
    server.sql(&made.database, "DO $$ BEGIN CREATE ROLE somebody LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$; GRANT vyre_worker TO somebody");
    let url = server.url("somebody", &made.database);
    assert!(matches!(come(&url), Ok(Joined::In(_))));
    let mut client = Client::connect(&url, NoTls).expect("it may connect");
    let mut denied = 0;
    let names = |text: &str| server.sql(&made.database, text).lines().map(str::to_string).collect::<Vec<_>>();
    for table in names("SELECT tablename FROM pg_tables WHERE schemaname = 'vyre'") {
        for text in [
            "SELECT * FROM vyre.{}",
            "DELETE FROM vyre.{}",
            "INSERT INTO vyre.{} DEFAULT VALUES",
            "TRUNCATE vyre.{}",
            "DROP TABLE vyre.{}",
        ] {
            let error = client.batch_execute(&text.replace("{}", &table)).expect_err("it is refused");
            let code = error.code().expect("the server says so").code().to_string();
            assert!(code == "42501", "{text} {table}: {error:?}");
            denied += 1;
        }
    }
    assert!(denied >= 45, "{denied}");
    let functions = names(
        "SELECT proname FROM pg_proc WHERE pronamespace = 'vyre'::regnamespace AND has_function_privilege('somebody', oid, 'execute') ORDER BY 1",
    );
    assert_eq!(functions, ["beat", "claim", "finish"]);
    // Who is nobody's worker may not even call these.
    server.sql(&made.database, "DO $$ BEGIN CREATE ROLE nobody LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    let error = said(come(&server.url("nobody", &made.database)));
    assert!(
        matches!(&error, DbError::Denied(why) if why.contains("permission denied") && why.contains("GRANT vyre_worker")),
        "{error:?}"
    );
    let error = said(Status::read(&mut connect(&Db::new(&url).expect("an address")), "c"));
    assert!(matches!(&error, DbError::Denied(_)), "{error:?}");
    // A worker that knows the number of somebody else's range cannot answer it.
    let (one, _) = join(&made, "one");
    let Ok(Claimed::Range(held)) = one.claim(1, &GO, &|_| ()) else { panic!("there is work") };
    let (two, _) = join(&made, "two");
    assert_eq!(two.finish(&held, &range(&made.plan, held.lo..held.hi), &GO, &|_| ()), Ok(Taken::Late));
    // Answers that do not have a record for each unit are refused.
    let ask = serde_json::json!({ "token": one.token(), "span": held.span, "fence": held.fence, "to": held.hi });
    let error = said(one.answer(&held, &ask, &[0; 96], &GO, &|_| ()));
    assert!(matches!(&error, DbError::Refused(why) if why.contains("an answer of 96 bytes")), "{error:?}");
}

pub fn messages(server: &mut Server) {
    let made = Made::new(server, 10, 30.0, 0.0);
    let url = server.url(OWNER, &made.database);
    let base = url.rsplit_once('/').expect("a path").0.to_string();
    // No server, no database, no campaigns, no such campaign.
    let error = said(come("postgres://me:s3cret@%2Fdoes%2Fnot%2Fexist/db"));
    assert!(matches!(&error, DbError::Away(why) if why.contains("/does/not/exist") && !why.contains("s3cret")), "{error:?}");
    let error = said(come("postgres://me:s3cret@127.0.0.1:1/db?sslmode=disable"));
    assert!(
        matches!(&error, DbError::Away(why) if why.contains("127.0.0.1:1") && why.contains("refused") && !why.contains("s3cret")),
        "{error:?}"
    );
    let error = said(come(&format!("{base}/missing")));
    assert!(matches!(&error, DbError::Url(why) if why.contains("\"missing\" does not exist")), "{error:?}");
    let empty = server.database();
    assert!(matches!(said(come(&format!("{base}/{empty}"))), DbError::NoCampaigns(_)));
    let settings_of = Settings { campaign: "other".into(), patience: Duration::ZERO, ..settings("w") };
    let error = said(Link::join(&made.db, &settings_of, &device(), &GO, &|_| ()));
    assert_eq!(error, DbError::Refused("there is no campaign `other`".into()));
    let again =
        vyre_campaign::New { name: "c", spec: &crate::spec(&made.plan), plan: &made.plan, classes: &[], lease: 1.0, second: 0.0 };
    assert!(matches!(said(create(&mut connect(&made.db), &again)), DbError::Refused(why) if why.contains("choose another name")));
    // Tables of another layout, older and newer, for workers and owners.
    for (layout, says) in [(0, "use the older vyre that made them"), (2, "use a newer vyre")] {
        server.sql(&made.database, &format!("UPDATE vyre.about SET layout = {layout}"));
        for error in
            [said(come(&url)), said(Status::read(&mut connect(&made.db), "c")), said(create(&mut connect(&made.db), &again))]
        {
            assert!(matches!(&error, DbError::Layout { .. }) && error.to_string().contains(says), "{error}");
            assert!(error.to_string().contains(&format!("layout {layout}, and this vyre knows layout 1")), "{error}");
        }
    }
    server.sql(&made.database, "UPDATE vyre.about SET layout = 1");
    // Who may not make tables is told what is needed for that.
    server.sql(&empty, "DO $$ BEGIN CREATE ROLE poor LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$");
    let poor = Db::new(&server.url("poor", &empty)).expect("an address");
    let error = said(create(&mut connect(&poor), &again));
    assert!(matches!(&error, DbError::Denied(why) if why.contains("needs CREATE on the database")), "{error:?}");
    full_disk(server, &made);
}

/// A disk that is full: the tables of answers are moved to a disk of a megabyte, where root can make one; else the server is told to say so.
fn full_disk(server: &Server, made: &Made) {
    let folder = server.folder().join("small");
    std::fs::create_dir(&folder).expect("a folder");
    let shown = folder.display().to_string();
    let run = |program: &str, args: &[&str]| {
        std::process::Command::new(program)
            .args(args)
            .stderr(std::process::Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let is_small = run("mount", &["-t", "tmpfs", "-o", "size=1m,mode=0777", "tmpfs", &shown]);
    let space = folder.join("space");
    if is_small {
        std::fs::create_dir(&space).expect("a folder");
        assert!(run("chown", &["postgres:", &space.display().to_string()]));
        server.sql(&made.database, &format!("CREATE TABLESPACE small LOCATION '{}'", space.display()));
        server.sql(&made.database, "ALTER TABLE vyre.answer SET TABLESPACE small");
        let filler = "CREATE TABLE filler (x text) TABLESPACE small; ALTER TABLE filler ALTER x SET STORAGE EXTERNAL";
        server.sql(&made.database, filler);
        while server.sql_of(&made.database, "INSERT INTO filler VALUES (repeat('x', 7000))").is_ok() {}
        // Space that the table of answers has left already.
        while server.sql_of(&made.database, "INSERT INTO vyre.answer (class, span, kind, lo, hi, worker, fence, records, void) VALUES (1, 0, 0, 0, 1, 0, 0, decode(repeat('00', 1500), 'hex'), true)").is_ok() {}
        while server.sql_of(&made.database, "INSERT INTO vyre.answer (class, span, kind, lo, hi, worker, fence, records, void) VALUES (1, 0, 0, 0, 1, 0, 0, '', true)").is_ok() {}
    } else {
        server.sql(&made.database, "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; CREATE TRIGGER full_disk BEFORE INSERT ON vyre.answer EXECUTE FUNCTION full_disk()");
    }
    let told = Mutex::new(Vec::new());
    let tell = |what: &str| told.lock().expect("nobody panics").push(what.to_string());
    let (link, _) = join(made, "full");
    let Ok(Claimed::Range(held)) = link.claim(1, &GO, &tell) else { panic!("there is work") };
    let answer = range(&made.plan, held.lo..held.hi);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| link.finish(&held, &answer, &GO, &tell));
        while told.lock().expect("nobody panics").is_empty() {
            assert!(!waits.is_finished(), "the disk is not full");
            std::thread::sleep(Duration::from_millis(10));
        }
        // Somebody makes room, and the answer that was waiting is taken.
        match is_small {
            true => {
                // Space is there again when the transaction that drops the table is through.
                for text in [
                    "DROP TABLE filler",
                    "DELETE FROM vyre.answer WHERE void",
                    "ALTER TABLE vyre.answer SET TABLESPACE pg_default",
                ] {
                    server.sql(&made.database, text);
                }
            }
            false => drop(server.sql(&made.database, "DROP TRIGGER full_disk ON vyre.answer")),
        }
        assert_eq!(waits.join().expect("it ends"), Ok(Taken::Yes));
    });
    let told = told.into_inner().expect("nobody panics");
    assert!(told[0].contains("the disk of") && told[0].contains("is full") && told[0].contains("it is tried again"), "{told:?}");
    assert!(told[1].contains("is back"), "{told:?}");
    if is_small {
        server.sql(&made.database, "DROP TABLESPACE small");
        assert!(run("umount", &[&shown]));
    }
}

/// Between worker and server somebody cuts the wire: after so many messages of the server, before or after they were passed on.
struct Wire {
    url: String,
    /// Messages until the cut.
    left: Arc<AtomicU64>,
}

impl Wire {
    fn new(server: &Server, database: &str) -> Wire {
        let folder = server.folder().join(format!("wire-{database}"));
        std::fs::create_dir(&folder).expect("a folder");
        let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).expect("a socket");
        let behind = server.folder().join("socket/.s.PGSQL.5432");
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let counts = left.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (behind, counts) = (behind.clone(), counts.clone());
                std::thread::spawn(move || {
                    let Ok(server) = UnixStream::connect(behind) else { return };
                    let (mut from_client, mut to_server) =
                        (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from_client, &mut to_server);
                        let _ = to_server.shutdown(std::net::Shutdown::Both);
                    });
                    let (mut from_server, mut to_client) = (server, client);
                    let mut bytes = [0; 8192];
                    while let Ok(count @ 1..) = from_server.read(&mut bytes) {
                        // What the server has said, it has done: the client does not hear of it.
                        if counts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(1))) == Ok(0) {
                            counts.store(u64::MAX, Ordering::SeqCst);
                            break;
                        }
                        if to_client.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to_client.shutdown(std::net::Shutdown::Both);
                    let _ = from_server.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        let url = format!("postgres://{OWNER}@{}/{database}", folder.display().to_string().replace('/', "%2F"));
        Wire { url, left }
    }
}

/// At every message of the server in turn: whether the server has committed or not, nothing is lost and nothing counted twice.
pub fn cut(server: &mut Server) {
    let made = Made::new(server, 200, 2.0, 0.0);
    let wire = Wire::new(server, &made.database);
    let db = Db::new(&wire.url).expect("an address");
    let told = Mutex::new(0);
    let tell = |_: &str| *told.lock().expect("nobody panics") += 1;
    let Ok(Joined::In((link, _))) = Link::join(&db, &settings("cut"), &device(), &GO, &tell) else { panic!("it may come") };
    for left in 0..24 {
        // In turn what is said to the claim, and to the answer.
        wire.left.store(left % 2, Ordering::SeqCst);
        let claim = match link.claim(2, &GO, &tell).expect("it is tried again") {
            Claimed::Range(claim) => claim,
            other @ (Claimed::Wait(_) | Claimed::Over(_)) => panic!("{other:?}"),
        };
        let taken = link.finish(&claim, &range(&made.plan, claim.lo..claim.hi), &GO, &tell);
        assert_eq!(taken, Ok(Taken::Yes), "cut after {left} messages");
    }
    wire.left.store(u64::MAX, Ordering::SeqCst);
    assert!(*told.lock().expect("nobody panics") >= 24, "the wire was cut often enough");
    // Claims that the worker never heard of are given back with a beat, by the worker that runs the rest.
    let heard = join(&made, "rest").1;
    let make = || {
        Ok(Box::new(crate::workers::Fake { plan: &made.plan, delay: Duration::ZERO, change: |_| (), alone: None })
            as Box<dyn vyre_campaign::Hand>)
    };
    let done = vyre_campaign::work(&link, &heard, &settings("cut"), vec![Box::new(make)], &GO, &tell).expect("it is there");
    assert_eq!(done.ended, vyre_campaign::Ended::Done);
    made.check(server);
}
