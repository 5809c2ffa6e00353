//! Rust tokens as the text they were written as.
//!
//! Lines mean something in vyre, and tokens know theirs, so each is put where it stood; comments are gone. What another macro has put
//! between them stands elsewhere, and is put in. What is common to all lines in front is left out.

/// A token, where it stands, and what the compiler is to point at.
pub struct Placed<S> {
    pub text: String,
    /// From 1.
    pub line: usize,
    pub column: usize,
    /// Whether the next punctuation belongs to it.
    pub joint: bool,
    pub span: S,
}

/// A text, and which token each part of it is.
pub struct Text<S> {
    pub text: String,
    /// By token: from which byte to which.
    tokens: Vec<(usize, usize, S)>,
}

impl<S> Text<S> {
    pub fn of(placed: Vec<Placed<S>>) -> Text<S> {
        let margin = margin(&placed);
        let jumps = jumps(&placed);
        let mut text = String::new();
        let mut tokens = Vec::with_capacity(placed.len());
        // Where the token before ends, and whether it is to be followed at once.
        let (mut line, mut column, mut joint) = (0, 0, true);
        for (n, token) in placed.into_iter().enumerate() {
            match jumps[n] {
                Some(true) => text.push('\n'),
                Some(false) => text.push(' '),
                None if n == 0 => {}
                None if token.line > line => {
                    text.extend(std::iter::repeat_n('\n', token.line - line));
                    text.extend(std::iter::repeat_n(' ', token.column.saturating_sub(margin + 1)));
                }
                None if token.column >= column => text.extend(std::iter::repeat_n(' ', token.column - column)),
                None if joint => {}
                None => text.push(' '),
            }
            let start = text.len();
            text.push_str(&token.text);
            // Strings may have lines in them.
            (line, column) = match token.text.rsplit_once('\n') {
                Some((before, last)) => (token.line + before.matches('\n').count() + 1, last.chars().count() + 1),
                None => (token.line, token.column + token.text.chars().count()),
            };
            joint = token.joint;
            tokens.push((start, text.len(), token.span));
        }
        text.push('\n');
        Text { text, tokens }
    }

    /// The first and the last token of a part of the text; where there is none, the last one before it.
    pub fn tokens_at(&self, start: usize, end: usize) -> Option<(&S, &S)> {
        let first = self.tokens.partition_point(|(_, to, _)| *to <= start);
        let last = self.tokens.partition_point(|(from, _, _)| *from < end.max(start + 1));
        match (self.tokens.get(first), last.checked_sub(1).and_then(|last| self.tokens.get(last))) {
            (Some((_, _, from)), Some((_, _, to))) if first < last => Some((from, to)),
            _ => {
                let before = &self.tokens.get(first.checked_sub(1)?.min(self.tokens.len() - 1))?.2;
                Some((before, before))
            }
        }
    }
}

/// By token: `Some` if it, or the one before, was put there by another macro, so that their lines say nothing about each other, and whether
/// a line ends between them.
fn jumps<S>(placed: &[Placed<S>]) -> Vec<Option<bool>> {
    let mut jumps = vec![None; placed.len()];
    for n in 1..placed.len() {
        let next = &placed[n];
        if next.line < placed[n - 1].line
            && let Some(before) = placed[..n].iter().rposition(|token| token.line <= next.line)
        {
            // Between two lines it ends the first, unless the second has room for it in front.
            let other_line = placed[before].line < next.line;
            let first = placed[..=before].iter().find(|token| token.line == placed[before].line);
            let has_room = placed[before].text == "{" || first.is_some_and(|first| next.column > first.column);
            jumps[before + 1] = Some(other_line && has_room);
            jumps[n] = Some(other_line && !has_room);
        }
    }
    jumps
}

/// How far in every line begins.
fn margin<S>(placed: &[Placed<S>]) -> usize {
    let mut line = 0;
    let firsts = placed.iter().filter(|token| {
        let is_first = token.line > line;
        line = line.max(token.line);
        is_first
    });
    // The first line begins behind the macro's name, if it does not have a line of its own.
    firsts.skip(1).map(|token| token.column).min().map_or(0, |column| column.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str, line: usize, column: usize) -> Placed<usize> {
        Placed { text: text.into(), line, column, joint: false, span: line * 100 + column }
    }

    #[test]
    fn tokens_stand_where_they_stood() {
        let text = Text::of(vec![
            token("program", 7, 20),
            token("p", 7, 28),
            token("{", 7, 30),
            token("workgroup", 8, 9),
            token("64", 8, 19),
            token("}", 10, 5),
        ]);
        assert_eq!(text.text, "program p {\n    workgroup 64\n\n}\n");
        let at = |word: &str| {
            let start = text.text.find(word).unwrap();
            text.tokens_at(start, start + word.len())
        };
        assert_eq!(at("workgroup"), Some((&809, &809)));
        assert_eq!(at("p {\n    workgroup 64"), Some((&728, &819)));
        // Between tokens and behind them: the one before.
        assert_eq!(text.tokens_at(text.text.len() - 1, text.text.len()), Some((&1005, &1005)));
        assert_eq!(text.tokens_at(0, 0), Some((&720, &720)));
    }

    #[test]
    fn what_other_macros_put_in_stands_where_it_was_put() {
        let text = Text::of(vec![
            token("program", 4, 5),
            token("name", 30, 9),
            token("{", 4, 19),
            token("workgroup", 5, 9),
            token("64", 31, 20),
            token("barrier", 6, 9),
            token("out", 32, 20),
            token("[", 7, 13),
            token("0", 7, 14),
            token("]", 7, 15),
            token("}", 8, 5),
        ]);
        assert_eq!(text.text, "program name {\nworkgroup 64\nbarrier\nout [0]\n}\n");
        assert_eq!(text.tokens_at(text.text.find("64").unwrap(), text.text.find("64").unwrap() + 2), Some((&3120, &3120)));
    }

    #[test]
    fn tokens_without_places_follow_one_another() {
        let mut dots = [token(".", 1, 1), token(".", 1, 1)];
        dots[0].joint = true;
        let [first, second] = dots;
        let text = Text::of(vec![token("for", 1, 1), token("i", 1, 1), token("0", 1, 1), first, second, token("4", 1, 1)]);
        assert_eq!(text.text, "for i 0 .. 4\n");
    }
}
