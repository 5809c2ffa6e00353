//! The table as a plot: bars of each kernel, how many times as long as by hand, on a logarithmic scale.

use super::table::{COLUMNS, Table};
use std::fmt::Write;

/// The first column is the measure and has no bar.
const COLOURS: [&str; COLUMNS.len()] = ["", "#1b6ca8", "#9a9a9a", "#d9a441", "#b5473c", "#6b4c9a"];
const LEFT: f64 = 120.0;
const WIDTH: f64 = 600.0;
const TOP: f64 = 44.0;
const BAR: f64 = 8.0;
const GAP: f64 = 12.0;
/// Ratios at the ends of the scale.
const SCALE: [f64; 2] = [0.5, 200.0];
const MARKS: [f64; 8] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

fn place(ratio: f64) -> f64 {
    let [low, high] = SCALE;
    LEFT + WIDTH * (ratio.clamp(low, high) / low).ln() / (high / low).ln()
}

/// An SVG file.
pub fn svg(table: &Table) -> String {
    let mut groups: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    let columns = || 0..COLUMNS.len();
    for row in &table.rows {
        groups.push((row.name.replace('_', " "), columns().map(|column| row.ratio(column)).collect()));
    }
    for (name, first) in [("mean, first six", true), ("mean, others", false)] {
        let means: Vec<Option<f64>> = columns().map(|column| table.mean(column, first)).collect();
        if means.iter().any(Option::is_some) {
            groups.push((name.into(), means));
        }
    }
    let step = BAR * (COLUMNS.len() - 1) as f64 + GAP;
    let (width, bottom) = (LEFT + WIDTH + 40.0, TOP + step * groups.len() as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>Time of kernels on one core: how many times as long as vector code by hand</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        bottom + 30.0
    );
    // Writing to a string cannot fail.
    let mut line = |text: std::fmt::Arguments<'_>| writeln!(out, "{text}").expect("it is a string");
    for (n, (name, colour)) in COLUMNS.iter().zip(COLOURS).skip(1).enumerate() {
        let x = LEFT + n as f64 * 110.0;
        line(format_args!("<rect x=\"{x}\" y=\"10\" width=\"10\" height=\"10\" fill=\"{colour}\"/>"));
        line(format_args!("<text x=\"{}\" y=\"19\" fill=\"#222222\">{name}</text>", x + 14.0));
    }
    for mark in MARKS {
        let (x, colour) = (place(mark), if mark == 1.0 { "#222222" } else { "#dddddd" });
        line(format_args!("<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{colour}\"/>", TOP - 8.0));
        line(format_args!(
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#222222\">{mark}x</text>",
            bottom + 14.0
        ));
    }
    for (n, (name, ratios)) in groups.iter().enumerate() {
        let y = TOP + step * n as f64;
        let middle = y + (step - GAP) / 2.0 + 4.0;
        line(format_args!("<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#222222\">{name}</text>", LEFT - 8.0));
        for (column, ratio) in ratios.iter().enumerate().skip(1) {
            let Some(ratio) = ratio else { continue };
            let (y, from, to) = (y + BAR * (column - 1) as f64, place(1.0).min(place(*ratio)), place(1.0).max(place(*ratio)));
            let (colour, width) = (COLOURS[column], (to - from).max(1.0));
            line(format_args!(
                "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                BAR - 1.0
            ));
            line(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"8\" fill=\"#444444\">{ratio:.2}</text>",
                to + 3.0,
                y + BAR - 1.5
            ));
        }
    }
    out.push_str("</svg>\n");
    out
}
