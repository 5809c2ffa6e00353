//! A page that shows how far a campaign is, and refreshes itself until the campaign is over.
//!
//! It is one file without scripts, which `report --watch` writes again and again: any web server, or none, can show it.

use crate::Matrix;
use crate::status::Status;
use std::fmt::Write;

/// Text in a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "body{font:14px system-ui,sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#222;background:#fff}\
table{border-collapse:collapse;margin:1em 0}td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left}\
progress{width:100%;height:1.2em}.bad{background:#fdd}code{font-size:12px}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#444}.bad{background:#511}}";

impl Status {
    /// The page. It refreshes itself after so many seconds, unless that is `None`.
    #[must_use]
    pub fn page(&self, refresh: Option<u64>, matrix: Option<&Matrix>) -> String {
        let refresh = refresh.map_or(String::new(), |after| format!("<meta http-equiv=\"refresh\" content=\"{after}\">"));
        let name = escaped(&self.campaign);
        let mut page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">{refresh}<meta name=\"viewport\" content=\"width=device-width\">\
             <title>{name}</title><style>{STYLE}</style><h1>{name}</h1>"
        );
        let state = match (self.is_cancelled, self.is_complete()) {
            (true, _) => "cancelled",
            (false, true) => "complete",
            (false, false) => "running",
        };
        let _ = write!(page, "<p>{state}; {} units for each device; {} s old</p>", self.units, self.age);
        for class in &self.classes {
            let left = class.left(self.units).map_or("—".into(), |left| format!("{left:.0} s"));
            let _ = write!(
                page,
                "<h2>{}</h2><p>{}</p><progress max=\"{}\" value=\"{}\"></progress><table><tr><th>done<th>claimed<th>rate<th>left<th>\
                 workers<th>failures<th>late<th>undecided</tr><tr><td>{} of {}<td>{}<td>{:.1}/s<td>{left}<td>{}<td{}>{}<td>{}<td{}>{}</tr></table>\
                 <p>{}</p>",
                escaped(&class.name),
                escaped(class.device.as_deref().unwrap_or("no worker has come yet")),
                self.units,
                class.done,
                class.done,
                self.units,
                class.claimed,
                class.rate,
                class.there().count(),
                bad(class.failures),
                class.failures,
                class.late,
                bad(class.conflicts_open),
                class.conflicts_open,
                escaped(&class.sampling()),
            );
            for why in &class.findings {
                let _ = write!(page, "<p class=\"bad\">{}</p>", escaped(why));
            }
            page += "<table><tr><th>worker<th>state<th>heard<th>units<th>claims<th>late</tr>";
            for worker in class.workers.iter().rev().take(200) {
                let _ = write!(
                    page,
                    "<tr><td>{} {}<td{}>{}<td>{:.0} s ago<td>{}<td>{}<td>{}</tr>",
                    worker.id,
                    escaped(&worker.name),
                    bad(u64::from(worker.state == "lost" || worker.state == "not believed")),
                    escaped(&worker.state),
                    worker.silent.max(0.0),
                    worker.units,
                    worker.claims,
                    worker.late
                );
            }
            page += "</table>";
        }
        if let Some(matrix) = matrix {
            page += "<h2>Devices</h2><table><tr><th>op";
            matrix.columns.iter().for_each(|column| page += &format!("<th>{}", escaped(&column.name)));
            for (op, row) in &matrix.rows {
                let _ = write!(page, "</tr><tr><td><code>{}</code>", escaped(op));
                row.iter().for_each(|cell| page += &format!("<td{}>{}", bad(u64::from(cell.contains("FAIL"))), escaped(cell)));
            }
            page += "</tr></table>";
            for column in &matrix.columns {
                let _ = write!(page, "<p>{}: {}; root <code>{}</code></p>", escaped(&column.name), column.verdict, column.root);
            }
        }
        page
    }
}

fn bad(count: u64) -> &'static str {
    if count > 0 { " class=\"bad\"" } else { "" }
}
