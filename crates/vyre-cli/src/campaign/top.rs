//! `vyre campaign top`: how far a campaign is, on the whole terminal.

use super::{Unseen, Watcher};
use crate::{Failure, print};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use vyre_campaign::{ClassStatus, Db, Status, counted};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);

pub fn top(db: &Db, name: &str, as_json: bool) -> Result<(), Failure> {
    if as_json || !std::io::stdout().is_terminal() {
        return Err(Failure::Usage("top needs a terminal; `vyre campaign status` shows the same once".into()));
    }
    let mut watcher = Watcher::new(db, name);
    let mut told = None;
    let mut seen = watcher.look(&mut |what| told = Some(what.to_string()))?;
    let mut terminal = ratatui::init();
    let ended = loop {
        if let Err(error) = terminal.draw(|frame| draw(frame, &seen, told.as_deref())) {
            break Err(Failure::Usage(format!("the terminal: {error}")));
        }
        match keys(Instant::now() + EVERY) {
            Ok(true) => break Ok(()),
            Ok(false) => {}
            Err(error) => break Err(Failure::Usage(format!("the terminal: {error}"))),
        }
        told = None;
        match watcher.look(&mut |what| told = Some(what.to_string())) {
            Ok(status) => seen = status,
            Err(Unseen::Away(why)) => told = Some(format!("{why}; this is how it was before")),
            Err(Unseen::Failed(failure)) => break Err(failure),
        }
    };
    ratatui::restore();
    print(&seen.text());
    ended
}

/// Waits, and says whether somebody wants to leave.
fn keys(until: Instant) -> std::io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if !event::poll(left)? {
            return Ok(false);
        }
        if let Event::Key(key) = event::read()? {
            let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(true);
            }
        }
    }
}

fn draw(frame: &mut Frame<'_>, status: &Status, told: Option<&str>) {
    let state = match (status.is_cancelled, status.is_complete()) {
        (true, _) => "cancelled",
        (false, true) => "complete",
        (false, false) => "running",
    };
    let title = format!(" {}: {state}, {} s old; q leaves ", status.campaign, status.age);
    let mut block = Block::bordered().title(title);
    if let Some(told) = told {
        block = block.title_bottom(Line::from(told.to_string()).fg(Color::Red));
    }
    let inside = block.inner(frame.area());
    frame.render_widget(block, frame.area());
    let parts = Layout::vertical(status.classes.iter().map(|_| Constraint::Fill(1))).split(inside);
    for (class, area) in status.classes.iter().zip(parts.iter()) {
        let [bar, line, findings, table] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(class.findings.len().min(3) as u16),
            Constraint::Fill(1),
        ])
        .areas(*area);
        let share = if status.units == 0 { 1.0 } else { class.done as f64 / status.units as f64 };
        let label = format!("{}: {} of {} units", class.name, class.done, status.units);
        frame.render_widget(Gauge::default().ratio(share.clamp(0.0, 1.0)).label(label).gauge_style(Color::Green), bar);
        frame.render_widget(Paragraph::new(summary(class, status.units)), line);
        let lines: Vec<Line<'_>> = class.findings.iter().take(3).map(|why| Line::from(why.as_str()).fg(Color::Red)).collect();
        frame.render_widget(Paragraph::new(lines), findings);
        // Those that are there first, the last that came first.
        let mut workers: Vec<_> = class.workers.iter().rev().collect();
        workers.sort_by_key(|worker| worker.state != "works");
        let rows = workers.iter().map(|worker| {
            let style = match worker.state.as_str() {
                "lost" | "not believed" => Style::new().fg(Color::Red),
                _ => Style::new(),
            };
            let [units, claims, late] = [worker.units, worker.claims, worker.late].map(|count| count.to_string());
            let heard = format!("{:.0} s", worker.silent.max(0.0));
            Row::new([worker.name.clone(), worker.state.clone(), heard, units, claims, late]).style(style)
        });
        let widths =
            [Constraint::Fill(1), Constraint::Length(12), Constraint::Length(8)].into_iter().chain([Constraint::Length(10); 3]);
        let head = Row::new(["worker", "state", "heard", "units", "claims", "late"]).style(Style::new().bold());
        frame.render_widget(Table::new(rows, widths).header(head), table);
    }
}

fn summary(class: &ClassStatus, units: u64) -> String {
    let left = class.left(units).map_or("—".into(), |left| format!("{left:.0} s"));
    format!(
        "{:.1} units/s, {left} left; {}; {}; {}; {} late; {:.1} % run twice",
        class.rate,
        counted(class.there().count() as u64, "worker"),
        counted(class.failures, "failure"),
        counted(class.conflicts_open, "conflict"),
        class.late,
        100.0 * class.checked_share()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use vyre_campaign::WorkerStatus;

    #[test]
    fn rate_time_workers_and_failures_are_on_the_screen() {
        let worker = |id: i64, state: &str| WorkerStatus {
            id,
            name: format!("host:{id}"),
            fingerprint: "f".into(),
            state: state.into(),
            silent: 3.0,
            units: 40,
            claims: 4,
            late: 1,
        };
        let class = ClassStatus {
            name: "cpu".into(),
            device: None,
            done: 250,
            claimed: 10,
            checked: 10,
            checks_open: 5,
            quarantined: 0,
            failures: 7,
            conflicts_open: 2,
            findings: vec!["worker 3 is not believed".into()],
            rate: 12.5,
            late: 1,
            workers: vec![worker(1, "lost"), worker(2, "works")],
        };
        let status =
            Status { campaign: "nightly".into(), is_cancelled: false, units: 1000, age: 9, second: 0.02, classes: vec![class] };
        let mut terminal = Terminal::new(TestBackend::new(100, 20)).expect("a terminal");
        terminal.draw(|frame| draw(frame, &status, Some("the database is out of reach"))).expect("it is drawn");
        let buffer = terminal.backend().buffer().clone();
        let text: String = (0..20).map(|y| (0..100).map(|x| buffer[(x, y)].symbol()).collect::<String>() + "\n").collect();
        for wanted in [
            "nightly: running",
            "cpu: 250 of 1000 units",
            "12.5 units/s, 60 s left; 1 worker; 7 failures; 2 conflicts",
            "worker 3 is not believed",
            "the database is out of reach",
        ] {
            assert!(text.contains(wanted), "no `{wanted}` in\n{text}");
        }
        let place = |name: &str| text.lines().position(|line| line.contains(name)).unwrap_or_else(|| panic!("{name}\n{text}"));
        assert!(place("host:2") < place("host:1"), "{text}");
    }
}
