//! What was measured, as a table and as JSON.

use serde_json::{Value, json};
use std::time::Duration;

/// The columns of the table: what others are compared with comes first.
pub const COLUMNS: [&str; 6] = ["by hand", "cpu", "plain Rust", "bulk", "PoCL", "lavapipe"];

/// How many of the columns are peers, at the end.
pub const PEERS: usize = 2;

/// A cell of the table.
#[derive(Clone)]
pub enum Cell {
    /// The fastest round.
    Time(Duration),
    /// Why there is none.
    Missing(String),
}

impl Cell {
    /// Of the fastest round.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Cell::Time(time) => Some(time.as_secs_f64()),
            Cell::Missing(_) => None,
        }
    }
}

/// What was measured of a kernel.
pub struct Row {
    /// The kernel.
    pub name: &'static str,
    /// How much of it one run is.
    pub size: &'static str,
    /// Whether it is one of the six that the goal is about.
    pub first: bool,
    /// In the order of the columns.
    pub cells: Vec<Cell>,
    /// What it takes to compile it for the cpu.
    pub compile: Duration,
    /// How the cpu ran it.
    pub lowering: String,
    /// How much faster two threads are, on the wall, and how much more of the processor they take together; where it was asked for.
    pub two_threads: Option<[f64; 2]>,
}

impl Row {
    /// How many times as long as by hand.
    pub fn ratio(&self, column: usize) -> Option<f64> {
        Some(self.cells[column].seconds()? / self.cells[0].seconds()?)
    }
}

/// Figures that belong to no kernel.
pub struct Single {
    /// What it is.
    pub name: &'static str,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// What it should be.
    pub goal: &'static str,
}

/// Everything that one run of the comparison found.
#[derive(Default)]
pub struct Table {
    /// What there is to know about the machine and the peers.
    pub about: Vec<(&'static str, String)>,
    /// Kernels.
    pub rows: Vec<Row>,
    /// The rest.
    pub singles: Vec<Single>,
}

/// The line above the rows.
pub fn print_header() {
    print!("{:<12} {:<16}", "", "");
    for column in COLUMNS {
        print!(" {column:>17}");
    }
    println!(" {:>11} {:>11}  lowering", "compile, us", "2 threads");
}

/// One kernel.
pub fn print_row(row: &Row) {
    print!("{:<12} {:<16}", row.name, row.size);
    for (column, cell) in row.cells.iter().enumerate() {
        match (cell, row.ratio(column)) {
            (Cell::Time(time), Some(ratio)) => print!(" {:>9.2} {:>7}", time.as_secs_f64() * 1e3, format!("x{ratio:.2}")),
            (Cell::Time(time), None) => print!(" {:>9.2} {:>7}", time.as_secs_f64() * 1e3, ""),
            (Cell::Missing(why), _) => print!(" {why:>17}"),
        }
    }
    let two = row.two_threads.map_or_else(String::new, |[wall, processor]| format!("{wall:.2}/{processor:.2}"));
    println!(" {:>11.0} {two:>11}  {}", row.compile.as_secs_f64() * 1e6, row.lowering);
}

impl Table {
    /// The geometric mean of a column over the first six kernels or over the others, where all of them were measured.
    pub fn mean(&self, column: usize, first: bool) -> Option<f64> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.first == first).collect();
        let ratios: Option<Vec<f64>> = rows.iter().map(|row| row.ratio(column)).collect();
        let ratios = ratios.filter(|ratios| ratios.len() >= super::cases::FIRST)?;
        Some((ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp())
    }

    /// Means and what belongs to no kernel.
    pub fn print_footer(&self) {
        for (name, first) in [("geomean of the first six", true), ("geomean of the others", false)] {
            print!("{name:<29}");
            for column in 0..COLUMNS.len() {
                print!(" {:>17}", self.mean(column, first).map_or_else(|| "-".into(), |mean| format!("x{mean:.2}")));
            }
            println!();
        }
        for Single { name, value, unit, goal } in &self.singles {
            println!("{name}: {value:.2} {unit} (goal {goal})");
        }
    }

    /// All of it, for programs.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = COLUMNS.iter().zip(&row.cells).enumerate().map(|(column, (name, cell))| {
                let value = match cell {
                    Cell::Time(time) => json!({ "ms": time.as_secs_f64() * 1e3, "ratio": row.ratio(column) }),
                    Cell::Missing(why) => json!({ "missing": why }),
                };
                ((*name).to_owned(), value)
            });
            json!({
                "kernel": row.name,
                "size": row.size,
                "columns": cells.collect::<serde_json::Map<String, Value>>(),
                "compile_us": row.compile.as_secs_f64() * 1e6,
                "lowering": row.lowering,
                "two_threads": row.two_threads.map(|[wall, processor]| json!({ "speedup": wall, "processor_time": processor })),
            })
        });
        let mean = |first: bool| {
            let means = COLUMNS.iter().enumerate().map(|(column, name)| ((*name).to_owned(), json!(self.mean(column, first))));
            means.collect::<serde_json::Map<String, Value>>()
        };
        json!({
            "about": self.about.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect::<serde_json::Map<String, Value>>(),
            "kernels": rows.collect::<Vec<Value>>(),
            "geomean_first_six": mean(true),
            "geomean_others": mean(false),
            "figures": self.singles.iter().map(|single| json!({ "name": single.name, "value": single.value, "unit": single.unit, "goal": single.goal })).collect::<Vec<Value>>(),
        })
    }
}
